import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Answer } from '../../../../src/core/call/answer.ts';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import type { Message } from '../../../../src/core/protocol/message/message.ts';
import type { Era } from '../../../../src/core/protocol/revisions.ts';
import { reportFaultsTo } from '../../../../src/core/util/boundary.ts';
import { ModernEndpoint } from '../../../../src/features/eras/endpoint/modern.ts';
import type { ToolHeaders } from '../../../../src/features/eras/endpoint/tool-headers.ts';
import { ListCache } from '../../../../src/features/eras/modern/list-cache.ts';
import type { ModernServer } from '../../../../src/features/eras/modern/modern-server.ts';
import type { Groups } from '../../../../src/features/eras/modern-on-legacy/groups.ts';
import { alice, createCallLog } from '../../../core/http/admission-fixture.ts';
import { asMessage } from '../../../support/as-message.ts';
import { acceptsJson, createFakeReply } from '../../../support/fake-reply.ts';
import { createHttpContext } from '../../../support/http-context.ts';

const version = '2026-07-28';
const envelope = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientCapabilities': {},
};
const message = (method: string, params: object = {}, meta: object = envelope) =>
  asMessage({ jsonrpc: '2.0', id: 7, method, params: { ...params, _meta: meta } });
const notification = (method: string) => asMessage({ jsonrpc: '2.0', method, params: { _meta: envelope } });
const headersOf = (method: string, more: Record<string, string> = {}) => ({
  'mcp-protocol-version': version,
  'mcp-method': method,
  ...more,
});
const call = message('tools/call', { name: 'echo' });
const callHeaders = headersOf('tools/call', { 'mcp-name': 'echo' });

interface EndpointState {
  readonly era?: Era | undefined;
  findEra?(): Promise<Era | Reason>;
  checkParams?(): unknown;
  readonly accepts?: typeof acceptsJson;
}

/** Posts a message to an endpoint whose server answers nothing. */
function post(
  posted: ReturnType<typeof message>,
  headers: Record<string, string>,
  { era, findEra, checkParams, accepts }: EndpointState = { era: 'modern' },
) {
  const calls = createCallLog();
  const modern = {
    name: 'git',
    era,
    revisions: [version],
    findEra: vi.fn(findEra ?? (async () => 'modern' as const)),
    request: vi.fn(),
    notify: vi.fn(),
    reportUnplaced: vi.fn(),
  };
  const tools = { check: vi.fn(checkParams), learn: vi.fn() };
  const groups = { request: vi.fn(), notify: vi.fn(async () => true) };
  const endpoint = new ModernEndpoint({
    modern: modern as unknown as ModernServer,
    groups: groups as unknown as Groups,
    lists: new ListCache({ legacyTtlMs: 0 }),
    tools: tools as unknown as ToolHeaders,
    commitAfterMs: 60_000,
    slowReaderMs: 1_000,
    calls,
  });
  const { context, response } = createHttpContext({ method: 'POST', headers });
  context.sender = { identity: alice, principal: alice.principal, forwarded: {} };
  const reply = createFakeReply(accepts);
  endpoint.post(context, posted, reply);
  return { modern, groups, tools, reply, calls, response };
}

const unanswered = { modern: { request: [], notify: [] }, groups: { request: [], notify: [] } };
const reached = ({ modern, groups }: ReturnType<typeof post>) => ({
  modern: { request: modern.request.mock.calls, notify: modern.notify.mock.calls },
  groups: { request: groups.request.mock.calls, notify: groups.notify.mock.calls },
});

describe('a modern request', () => {
  it.each<[string, ReturnType<typeof message>, Record<string, string>, object]>([
    ['no envelope', message('x', {}, {}), {}, { reason: 'bad_envelope' }],
    ['a removed method without envelope', message('ping', {}, {}), {}, { reason: 'method_removed' }],
    [
      'no capabilities',
      message('x', {}, { 'io.modelcontextprotocol/protocolVersion': version }),
      {},
      { reason: 'bad_envelope' },
    ],
    [
      'a method that the header contradicts',
      message('x'),
      { 'mcp-method': 'y' },
      { reason: 'header_mismatch', data: { header: 'Mcp-Method', problem: 'different' } },
    ],
    [
      'a version that the header contradicts',
      message('x'),
      { 'mcp-protocol-version': '2027-01-01' },
      { reason: 'header_mismatch', data: { header: 'MCP-Protocol-Version', problem: 'different' } },
    ],
    [
      'an unknown version',
      message('x', {}, { ...envelope, 'io.modelcontextprotocol/protocolVersion': '2027-01-01' }),
      {},
      { reason: 'version_not_served', data: { supported: [version], requested: '2027-01-01' } },
    ],
    [
      'no header of the version',
      message('x'),
      {},
      { reason: 'header_mismatch', data: { header: 'MCP-Protocol-Version', problem: 'missing' } },
    ],
    [
      'no header of the tool',
      call,
      headersOf('tools/call'),
      { reason: 'header_mismatch', data: { header: 'Mcp-Name', problem: 'missing' } },
    ],
    ['a removed method', message('ping'), headersOf('ping'), { reason: 'method_removed' }],
    ['no filter', message('subscriptions/listen'), headersOf('subscriptions/listen'), { reason: 'bad_filter' }],
  ])('is refused: %s', (_, posted, headers, fault) => {
    const answered = post(posted, headers);
    expect(answered.reply.given).toMatchObject({ kind: 'fault', id: 7, ...fault });
    expect(reached(answered)).toEqual(unanswered);
  });

  it('to listen needs a client that reads a stream', () => {
    const listen = message('subscriptions/listen', { notifications: { toolsListChanged: true } });
    const { reply } = post(listen, headersOf('subscriptions/listen'), { era: 'modern', accepts: acceptsJson });
    expect(reply.given).toMatchObject({ reason: 'not_acceptable' });
  });

  it.each(['modern', 'legacy'] as const)('goes to a server of the %s era', (era) => {
    const { modern, groups, tools, reply } = post(message('tools/list'), headersOf('tools/list'), { era });
    const [used, other] = era === 'modern' ? [modern, groups] : [groups, modern];
    expect(used.request).toHaveBeenCalledTimes(1);
    expect(other.request).not.toHaveBeenCalled();
    expect([tools.check.mock.calls, reply.given]).toEqual([[], undefined]);
  });

  it('for tools teaches their parameters, unless the server refuses it', () => {
    const { modern, tools } = post(message('tools/list'), headersOf('tools/list'));
    const [request, , answer] = modern.request.mock.calls[0] as [Message, unknown, Answer];
    answer.response(asMessage({ jsonrpc: '2.0', id: request.id, result: { tools: [{ name: 'x' }] } }), 200);
    expect(tools.learn.mock.calls.map(([text]) => JSON.parse(text).result)).toEqual([{ tools: [{ name: 'x' }] }]);
    const refused = post(message('tools/list'), headersOf('tools/list'));
    const [, , other] = refused.modern.request.mock.calls[0] as [Message, unknown, Answer];
    other.response(asMessage({ jsonrpc: '2.0', id: request.id, error: { code: 1, message: '' } }), 200);
    expect(refused.tools.learn).not.toHaveBeenCalled();
  });

  it('waits until the era of its server is known', async () => {
    const { modern } = post(call, callHeaders, { findEra: async () => 'modern', checkParams: async () => undefined });
    expect(modern.request).not.toHaveBeenCalled();
    await vi.waitFor(() => expect(modern.request).toHaveBeenCalledTimes(1));
  });

  it('is answered with the reason why the era cannot be known', async () => {
    const { reply } = post(call, callHeaders, { findEra: async () => 'server_start_failed' });
    expect(await reply.answered()).toMatchObject({ reason: 'server_start_failed', id: 7 });
  });

  it.each([
    [
      'later',
      async () => ({ header: 'Mcp-Param-Region' }),
      { reason: 'header_mismatch', data: { header: 'Mcp-Param-Region', problem: 'missing' } },
    ],
    ['at once', () => ({ header: 'Mcp-Param-Region' }), { reason: 'header_mismatch' }],
    ['of an ambiguous body', () => 'duplicate_key', { reason: 'duplicate_key' }],
  ])('is refused for a mirrored parameter: %s', async (_, checkParams, fault) => {
    const answered = post(call, callHeaders, { era: 'modern', checkParams });
    expect(await answered.reply.answered()).toMatchObject(fault);
    expect(answered.modern.request).not.toHaveBeenCalled();
  });

  it('whose client has left meanwhile reaches no server', async () => {
    const { modern, reply } = post(call, callHeaders, { findEra: async () => 'modern' });
    reply.leave();
    await new Promise((resolve) => setImmediate(resolve));
    expect(modern.request).not.toHaveBeenCalled();
  });
});

describe('a modern notification', () => {
  it.each(['modern', 'legacy'] as const)('of a vendor goes to a server of the %s era', async (era) => {
    const vendor = notification('com.example/x');
    const { modern, groups, reply } = post(vendor, {}, { era });
    expect(await reply.answered()).toEqual({ kind: 'accepted' });
    expect([modern.notify.mock.calls.length, groups.notify.mock.calls.length]).toEqual(
      era === 'modern' ? [1, 0] : [0, 1],
    );
  });

  it('of the protocol says nothing to a legacy server', async () => {
    const { groups, reply } = post(notification('notifications/cancelled'), {}, { era: 'legacy' });
    expect(await reply.answered()).toEqual({ kind: 'accepted' });
    expect(groups.notify).not.toHaveBeenCalled();
  });
});

describe('[E-03] a fault of the gateway', () => {
  let faults: unknown[];
  let restore: () => void;
  beforeEach(() => {
    faults = [];
    restore = reportFaultsTo((_seam, cause) => void faults.push(cause));
  });
  afterEach(() => restore());
  const slip = new TypeError('a slip');

  it.each<[string, EndpointState]>([
    ['the search for the era', { findEra: () => Promise.reject(slip) }],
    ['the check of parameters', { era: 'modern', checkParams: () => Promise.reject(slip) }],
  ])('in %s ends the request as internal', async (_, state) => {
    const { reply } = post(call, callHeaders, state);
    expect(await reply.answered()).toMatchObject({ reason: 'internal', id: 7 });
    expect(faults).toEqual([slip]);
  });

  it('in the way of a notification ends its request as internal', async () => {
    const vendor = notification('com.example/x');
    const { response } = post(vendor, {}, { findEra: () => Promise.reject(slip) });
    await vi.waitFor(() => expect(response()?.status).toBe(500));
    expect(faults).toEqual([slip]);
  });
});
