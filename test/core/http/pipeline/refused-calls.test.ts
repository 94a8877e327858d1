import { describe, expect, it } from 'vitest';
import { type RefusedRequest, reportRefusal } from '../../../../src/core/http/pipeline/refused-calls.ts';
import { HttpReply } from '../../../../src/core/http/replies/http-reply.ts';
import type { Message } from '../../../../src/core/protocol/message/message.ts';
import { faultAnswer } from '../../../../src/core/reply/reply.ts';
import { asMessage } from '../../../support/as-message.ts';
import { createHttpContext } from '../../../support/http-context.ts';
import { alice, createCallLog } from '../admission-fixture.ts';

const call = asMessage({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo' } });
const notification = asMessage({ jsonrpc: '2.0', method: 'notifications/x' });
const modern = asMessage({
  jsonrpc: '2.0',
  id: 3,
  method: 'ping',
  params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } },
});

/** A POST of alice that is refused. */
function refuse(messages: readonly Message[] | undefined, facts: Partial<RefusedRequest> = {}, version?: string) {
  const observer = createCallLog();
  const { context } = createHttpContext({
    method: 'POST',
    headers: version === undefined ? {} : { 'mcp-protocol-version': version },
  });
  context.endpoint = { server: { name: 'git' }, calls: observer };
  context.identity = alice;
  context.messages = messages;
  Object.assign(context, facts);
  const isReported = reportRefusal(context, 'quota_bytes');
  return { ...observer, isReported };
}

describe('a refused POST', () => {
  it('ends each of its calls, and no notification', () => {
    const { calls, refusals, isReported } = refuse([call, notification, modern]);
    expect(refusals).toEqual(['quota_bytes']);
    expect(calls.map(({ method, name, bytesIn }) => [method, name, bytesIn])).toEqual([
      ['tools/call', 'echo', call.text.length],
      ['ping', undefined, modern.text.length],
    ]);
    expect(isReported).toBe(true);
  });

  it('that was not read ends as one call without a method', () => {
    expect(refuse(undefined).calls).toMatchObject([{ method: undefined, bytesIn: 0 }]);
  });

  it.each([
    ['a legacy message', [call], undefined, 'legacy'],
    ['a modern message', [modern], undefined, 'modern'],
    ['a modern header', undefined, '2026-07-28', 'modern'],
    ['nothing', undefined, undefined, 'legacy'],
  ])('is of the era of %s', (_, messages, version, era) => {
    expect(refuse(messages, {}, version).calls[0]?.origin).toEqual({ server: 'git', era, principal: alice.principal });
  });

  it('that is answered with the fault of a call counts as refused, and ends no call again', () => {
    const observer = createCallLog();
    const { context } = createHttpContext({ method: 'POST' });
    Object.assign(context, { endpoint: { server: { name: 'git' }, calls: observer }, messages: [call] });
    context.sender = { identity: alice, principal: alice.principal, forwarded: {} };
    const reply = new HttpReply(context, { heartbeatMs: 1_000 });
    reply.answer({ ...faultAnswer('server_exited', 2), isReported: true });
    expect([observer.refusals, observer.calls]).toEqual([['server_exited'], []]);
  });

  it('without observer is not reported', () => {
    expect(refuse([call], { endpoint: { server: { name: 'git' } } })).toMatchObject({ calls: [], isReported: false });
  });

  it('before it has reached a server is not reported', () => {
    expect(refuse([call], { endpoint: undefined })).toMatchObject({ calls: [], isReported: false });
  });
});

describe('a refusal that ends only the answer', () => {
  it('is not reported: the call goes on', () => {
    const observer = createCallLog();
    const { context } = createHttpContext({ method: 'POST' });
    context.endpoint = { server: { name: 'git' }, calls: observer };
    expect(reportRefusal(context, 'credentials_expired')).toBe(false);
    expect([observer.refusals, observer.calls]).toEqual([[], []]);
  });
});
