import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HttpContext } from '../../../../src/core/http/http-context.ts';
import { type MessagePolicy, MessageReceiver } from '../../../../src/core/http/pipeline/receive-messages.ts';
import { findHeaderFault, receivePost } from '../../../../src/core/http/pipeline/receive-post.ts';
import { reportFaultsTo } from '../../../../src/core/util/boundary.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';
import { createHttpContext, type FakeRequest } from '../../../support/http-context.ts';
import { alice, createAuthorization } from '../admission-fixture.ts';

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const json = { 'content-type': 'application/json' };

/** Posts a request to an endpoint that keeps what is dispatched. */
function post(
  request: FakeRequest,
  { isAcceptable = true, maxBytes = 100, dispatch = vi.fn<MessagePolicy<HttpContext>['dispatch']>() } = {},
) {
  const { context, response } = createHttpContext({ method: 'POST', ...request });
  context.sender = { identity: alice, principal: alice.principal, forwarded: {} };
  const policy: MessagePolicy<HttpContext> = { createReply: () => createFakeReply(), dispatch };
  const options = { server: { name: 'git' }, authorization: createAuthorization(), maxDepth: 5 };
  receivePost(context, maxBytes, isAcceptable, new MessageReceiver(policy, options, 'http'));
  return { context, response, dispatch };
}

describe('the head of a POST', () => {
  it.each([
    [{ 'content-type': 'application/json' }, undefined],
    [{ 'content-type': 'Application/JSON; charset=utf-8' }, undefined],
    [{ 'content-type': 'application/json', 'content-encoding': 'identity' }, undefined],
    [{ 'content-type': 'application/json', 'content-encoding': 'Identity' }, undefined],
    [{}, 'bad_content_type'],
    [{ 'content-type': 'text/plain' }, 'bad_content_type'],
    [{ 'content-type': 'application/json; charset=latin1' }, 'bad_content_type'],
    [{ 'content-type': 'application/json-rpc' }, 'bad_content_type'],
    [{ 'content-type': 'application/json', 'content-encoding': 'gzip' }, 'encoded_body'],
    [{ 'content-encoding': 'br' }, 'encoded_body'],
  ])('%j is judged as %s', (headers, fault) => {
    expect(findHeaderFault(headers)).toBe(fault);
  });

  it.each<[string, FakeRequest, boolean, number, string]>([
    ['a form', { headers: { 'content-type': 'multipart/form-data' } }, true, 415, 'bad_content_type'],
    ['no acceptable answer', { headers: json }, false, 406, 'not_acceptable'],
    ['a large Content-Length', { headers: { ...json, 'content-length': '101' } }, true, 413, 'body_too_large'],
  ])('is refused before its body is read: %s', (_, request, isAcceptable, status, fault) => {
    const { context, response, dispatch } = post({ ...request, body: undefined }, { isAcceptable });
    expect([response()?.status, context.fault]).toEqual([status, fault]);
    expect([context.incoming.listenerCount('data'), dispatch.mock.calls]).toEqual([0, []]);
  });
});

describe('the body of a POST', () => {
  it('is dispatched when it has arrived whole', async () => {
    const { context, dispatch } = post({ headers: json, body: [ping.slice(0, 9), ping.slice(9)] });
    expect(context.receivedAt).toBeUndefined();
    await vi.waitFor(() => expect(dispatch).toHaveBeenCalledTimes(1));
    expect(dispatch.mock.calls[0]).toMatchObject([context, { id: 1, messages: [{ method: 'ping' }] }, {}]);
    expect(context.receivedAt).toBeGreaterThanOrEqual(context.startedAt);
  });

  it.each([
    ['no JSON', ['{'], 400, 'not_json', null],
    ['no message', ['{"jsonrpc":"1.0","id":7,"method":"ping"}'], 400, 'not_json_rpc', 7],
    ['too many bytes', [' '.repeat(60), ' '.repeat(60)], 413, 'body_too_large', null],
  ])('is refused: %s', async (_, body, status, fault, id) => {
    const { context, response } = post({ headers: json, body });
    await vi.waitFor(() => expect(response()?.status).toBe(status));
    expect(context.fault).toBe(fault);
    expect(JSON.parse(response()?.text ?? '')).toMatchObject({ id });
  });

  it('is not answered if its client leaves before its end', async () => {
    const { context, response, dispatch } = post({ headers: json, body: undefined });
    context.incoming.push(ping.slice(0, 9));
    context.incoming.destroy();
    await new Promise((resolve) => setImmediate(resolve));
    expect([response(), context.fault, dispatch.mock.calls]).toEqual([undefined, undefined, []]);
  });

  it.each([
    ['[P4] is dispatched to a session', {}, 1],
    ['of 2026-07-28 is dropped', { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } }, 0],
  ])('%s if its client leaves after it has sent the body whole', async (_, meta, dispatched) => {
    const pad = 'x'.repeat(2_000_000); // so large that it is read in steps
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...meta, name: 'a', pad } });
    const { context, dispatch } = post({ headers: json, body: [body] }, { maxBytes: 3_000_000 });
    await once(context.incoming, 'end');
    expect(dispatch).not.toHaveBeenCalled();
    context.outgoing.destroy();
    await delay(300);
    expect(dispatch).toHaveBeenCalledTimes(dispatched);
  });

  describe('[E-03] that hits a fault of the gateway', () => {
    let faults: unknown[];
    let restore: () => void;
    beforeEach(() => {
      faults = [];
      restore = reportFaultsTo((_seam, cause) => void faults.push(cause));
    });
    afterEach(() => restore());

    it('ends as internal under the id of its message, and is reported', async () => {
      const slip = new TypeError('a slip');
      const dispatch = vi.fn(() => {
        throw slip;
      });
      const { response } = post({ headers: json, body: [ping] }, { dispatch });
      await vi.waitFor(() => expect(response()?.status).toBe(500));
      expect(JSON.parse(response()?.text ?? '')).toMatchObject({ id: 1, error: { data: { reason: 'internal' } } });
      expect(faults).toEqual([slip]);
    });
  });
});
