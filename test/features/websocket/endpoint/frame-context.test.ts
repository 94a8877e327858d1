import { describe, expect, it, type Mock, vi } from 'vitest';
import { MessageReceiver } from '../../../../src/core/http/pipeline/receive-messages.ts';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import { RequestPermit } from '../../../../src/core/quota/request-permit.ts';
import { reportFaultsTo } from '../../../../src/core/util/boundary.ts';
import { FrameContext } from '../../../../src/features/websocket/endpoint/frame-context.ts';
import { refuseSubprotocols } from '../../../../src/features/websocket/endpoint/websocket.ts';
import { alice, createAuthorization } from '../../../core/http/admission-fixture.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';

const call = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"drop_table"}}';

/** Receives one frame. */
async function receive(
  text: string,
  { quota, dispatch = vi.fn() }: { quota?: Reason; dispatch?: Mock<() => void> } = {},
) {
  const connection = { refuse: vi.fn(), fail: vi.fn() };
  const release = vi.fn();
  const permit = Object.assign(new RequestPermit([], 0, 0), { admitNext: vi.fn(() => quota ?? release) });
  const sender = { identity: alice, principal: alice.principal, forwarded: {} };
  const context = new FrameContext(connection, { server: { name: 'git' }, sender, permit });
  const receiver = new MessageReceiver<FrameContext>(
    { createReply: () => createFakeReply(), dispatch },
    {
      server: { name: 'git' },
      authorization: createAuthorization({ toolScopes: { 'drop_*': ['write'] } }),
      maxDepth: 10,
    },
    'websocket',
  );
  const read = await receiver.read(context, Buffer.from(text));
  context.contain(() => receiver.receive(context, read));
  return { context, connection, release, permit, dispatch };
}

describe('a frame', () => {
  it('is admitted by the messages in it, and holds their quota until it is answered', async () => {
    const { context, permit, release, dispatch } = await receive('[{"jsonrpc":"2.0","method":"x"}]');
    expect(permit.admitNext.mock.calls).toMatchObject([[[{ method: 'x' }]]]);
    expect([dispatch.mock.calls.length, release.mock.calls.length]).toEqual([1, 0]);
    context.release();
    expect(release).toHaveBeenCalledTimes(1);
  });

  it.each<[string, string, Reason | undefined, unknown[], number]>([
    ['beyond a quota', call, 'quota_requests', ['quota_requests', 2, undefined], 0],
    ['without a scope', call, undefined, ['insufficient_scope', 2, { scope: 'write' }], 1],
    ['that is no JSON', '{', undefined, ['not_json', null, undefined], 1],
  ])('%s is refused, and holds nothing', async (_, text, quota, fault, released) => {
    const { context, connection, release, dispatch } = await receive(text, { ...(quota && { quota }) });
    expect(connection.refuse.mock.calls).toEqual([[context.messages, ...fault]]);
    expect([release.mock.calls.length, dispatch.mock.calls.length]).toEqual([released, 0]);
  });

  it('[E-03] that hits a fault of the gateway ends its connection', async () => {
    const faults: unknown[] = [];
    const restore = reportFaultsTo((_seam, cause) => void faults.push(cause));
    const slip = new TypeError('a slip');
    const dispatch = vi.fn((): never => {
      throw slip;
    });
    const { connection } = await receive('{"jsonrpc":"2.0","method":"x"}', { dispatch });
    restore();
    expect([connection.fail.mock.calls.length, faults]).toEqual([1, [slip]]);
  });
});

describe('the subprotocols of a handshake', () => {
  it.each([
    [undefined, undefined],
    ['mcp', undefined],
    ['chat, mcp', undefined],
    ['chat', 'subprotocol_required'],
    ['', 'subprotocol_required'],
    ['MCP', 'subprotocol_required'],
  ])('%j are judged as %s', (offered, reason) => {
    expect(refuseSubprotocols(offered === undefined ? {} : { 'sec-websocket-protocol': offered })).toBe(reason);
  });
});
