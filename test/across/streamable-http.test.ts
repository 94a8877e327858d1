import { describe, expect, it, vi } from 'vitest';
import { CredentialWatch } from '../../src/core/auth/credential-watch.ts';
import {
  findPostOnlyReason,
  StreamableHttpEndpoint,
  type StreamableHttpEndpointOptions,
} from '../../src/core/http/endpoints/streamable-http.ts';
import { formatEventId } from '../../src/core/protocol/wire/event-id.ts';
import { faultAnswer, type Reply } from '../../src/core/reply/reply.ts';
import type { SessionHandle } from '../../src/core/session/session-handle.ts';
import { keyFromId } from '../../src/core/session/session-key.ts';
import { ModernEndpoint } from '../../src/features/eras/endpoint/modern.ts';
import { SessionlessEndpoint } from '../../src/features/eras/endpoint/sessionless.ts';
import { ToolHeaders } from '../../src/features/eras/endpoint/tool-headers.ts';
import { ListCache } from '../../src/features/eras/modern/list-cache.ts';
import type { ModernServer } from '../../src/features/eras/modern/modern-server.ts';
import type { Groups } from '../../src/features/eras/modern-on-legacy/groups.ts';
import { alice, createAdmissionOptions } from '../core/http/admission-fixture.ts';
import { createHttpContext, type FakeRequest } from '../support/http-context.ts';

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
const initialize = '{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}';
const withMeta = (method: string, id = ',"id":3') =>
  `{"jsonrpc":"2.0"${id},"method":"${method}","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`;
const json = { 'content-type': 'application/json' };
const session = { 'mcp-session-id': 'its-id' };
const stream = { accept: 'text/event-stream' };

/** Sends an admitted request to an endpoint, and waits for what the endpoint does. */
async function send(
  request: FakeRequest,
  options: Partial<StreamableHttpEndpointOptions> = {},
  servesSessionless = false,
) {
  const answer = (name: string) =>
    vi.fn((...parts: unknown[]) => (parts.at(-1) as Reply).answer(faultAnswer('draining', name)));
  const [open, post, listen, remove] = ['open', 'post', 'listen', 'remove'].map(answer);
  const handle = { post, listen, remove } as unknown as SessionHandle;
  const anywhere = vi.fn<StreamableHttpEndpointOptions['sessions']['anywhere']>(() => handle);
  const groups = { sessionless: vi.fn((_message, _caller, to) => to.fault('draining')), notify: async () => true };
  const admission = createAdmissionOptions();
  const parts = {
    ...admission,
    lists: new ListCache({ legacyTtlMs: 0 }),
    tools: new ToolHeaders({ era: 'legacy', distinguishesUsers: false, listTools: async () => undefined }),
    modern: { name: 'git', era: 'legacy', revisions: ['2026-07-28'] } as unknown as ModernServer,
    groups: groups as unknown as Groups,
    slowReaderMs: 1_000,
    commitAfterMs: 1_000,
  };
  const endpoint = new StreamableHttpEndpoint({
    ...admission,
    sessions: { anywhere, open: open as StreamableHttpEndpointOptions['sessions']['open'] },
    modern: new ModernEndpoint(parts),
    sessionless: servesSessionless ? new SessionlessEndpoint(parts) : undefined,
    watch: new CredentialWatch(),
    maxDepth: 10,
    heartbeatMs: 1_000,
    slowReaderMs: 1_000,
    ...options,
  });
  const { context, response } = createHttpContext(request);
  context.sender = { identity: { ...alice, scopes: undefined }, principal: alice.principal, forwarded: {} };
  endpoint.serve(context);
  await vi.waitFor(() => expect(response()).toBeDefined());
  const text = response()?.text ?? '';
  return { context, anywhere, open, post, listen, remove, groups, status: response()?.status, text };
}

describe('the endpoint', () => {
  it.each([
    ['PUT', json, 405, 'method_not_allowed'],
    ['OPTIONS', {}, 405, 'method_not_allowed'],
    ['HEAD', session, 405, 'method_not_allowed'],
    ['GET', { ...session, accept: 'application/json' }, 406, 'not_acceptable'],
    ['GET', { ...session, accept: 'text/event-stream;q=0' }, 406, 'not_acceptable'],
    ['GET', stream, 400, 'session_required'],
    ['GET', { ...stream, 'mcp-session-id': 'ä' }, 404, 'unknown_session'],
    ['GET', { ...stream, 'mcp-session-id': 'x'.repeat(300) }, 404, 'unknown_session'],
    ['DELETE', { 'mcp-session-id': '' }, 404, 'unknown_session'],
    ['GET', { ...stream, ...session, 'last-event-id': 'what' }, 400, 'bad_event_id'],
    ['GET', { ...stream, 'mcp-protocol-version': '2026-07-28' }, 405, 'post_only'],
    ['DELETE', {}, 400, 'session_required'],
    ['DELETE', { 'mcp-protocol-version': '2026-07-28' }, 405, 'post_only'],
    ['POST', { ...json, accept: 'text/html' }, 406, 'not_acceptable'],
    ['POST', { ...json, accept: 'application/json;q=0, text/event-stream;q=0' }, 406, 'not_acceptable'],
    ['POST', {}, 415, 'bad_content_type'],
  ])('refuses %s with %j', async (method, headers, status, fault) => {
    const answered = await send({ method, headers, body: [ping] });
    expect([answered.status, answered.context.fault]).toEqual([status, fault]);
  });

  it.each([
    [session, true, undefined],
    [{}, true, 'sessionless_post_only'],
    [{}, false, undefined],
    [{ 'mcp-protocol-version': '2026-07-28' }, true, 'post_only'],
    [{ ...session, 'mcp-protocol-version': '2026-07-28' }, true, undefined],
  ])('tells a client with %j whether it may only POST (sessionless: %s)', (headers, serves, reason) => {
    expect(findPostOnlyReason(headers, serves)).toBe(reason);
  });
});

describe('a POST', () => {
  const namedSession = [
    { key: keyFromId('its-id'), server: expect.anything(), principal: alice.principal, version: undefined },
  ];

  it('in a session goes to the session, whose name the context keeps', async () => {
    const { anywhere, post, context } = await send({ method: 'POST', headers: { ...json, ...session }, body: [ping] });
    expect(anywhere.mock.calls).toEqual([namedSession]);
    expect(post?.mock.calls[0]?.[0]).toMatchObject({ isBatch: false, messages: [{ method: 'ping' }] });
    expect(context.sessionKey).toBe(keyFromId('its-id'));
  });

  it('with initialize opens a session', async () => {
    const { open, anywhere } = await send({ method: 'POST', headers: json, body: [initialize] });
    expect(open?.mock.calls[0]).toMatchObject([{}, alice.principal, { method: 'initialize' }, {}]);
    expect(anywhere).not.toHaveBeenCalled();
  });

  it.each([
    ['initialize in a batch without session', json, `[${initialize}]`, 'session_required'],
    ['a message without session', json, ping, 'session_required'],
    ['an id of another gateway', { ...json, 'mcp-session-id': 'ä' }, ping, 'unknown_session'],
    [
      'initialize with an id of another gateway',
      { ...json, 'mcp-session-id': 'x'.repeat(300) },
      initialize,
      'unknown_session',
    ],
    [
      'a modern response',
      { ...json, 'mcp-protocol-version': '2026-07-28' },
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      'modern_response',
    ],
    ['a modern request without envelope', { ...json, 'mcp-protocol-version': '2026-07-28' }, list, 'bad_envelope'],
    ['a removed method without envelope', { ...json, 'mcp-protocol-version': '2026-07-28' }, ping, 'method_removed'],
    [
      'a modern request, also with a session',
      { ...json, ...session, 'mcp-method': 'other' },
      withMeta('ping'),
      'header_mismatch',
    ],
    [
      'a modern notification that its headers contradict',
      { ...json, 'mcp-method': 'other' },
      withMeta('x', ''),
      'header_mismatch',
    ],
  ])('is refused: %s', async (_, headers, body, fault) => {
    const { context, anywhere, open } = await send({ method: 'POST', headers, body: [body] });
    expect(context.fault).toBe(fault);
    expect([anywhere.mock.calls, open?.mock.calls]).toEqual([[], []]);
  });

  it('that its session does not take is answered under its id', async () => {
    const anywhere = () => 'unknown_session' as const;
    const sessions = { anywhere, open: () => undefined };
    const { status, text } = await send(
      { method: 'POST', headers: { ...json, ...session }, body: [ping] },
      { sessions },
    );
    expect([status, JSON.parse(text)]).toMatchObject([404, { id: 1 }]);
  });

  describe('without a session, where that is served', () => {
    const post = (body: string, headers = {}) =>
      send({ method: 'POST', headers: { ...json, ...headers }, body: [body] }, {}, true);

    it('goes to the sessions of its group', async () => {
      const { groups } = await post(ping);
      expect(groups.sessionless.mock.calls[0]).toMatchObject([{ method: 'ping' }, { principal: alice.principal }, {}]);
    });

    it.each([
      ['a notification is accepted and dropped', '{"jsonrpc":"2.0","method":"x"}', {}, 202, undefined],
      ['a response is refused', '{"jsonrpc":"2.0","id":1,"result":{}}', {}, 400, 'session_required'],
      ['a batch is refused', `[${ping}]`, {}, 400, 'session_required'],
      ['an unknown revision is refused', ping, { 'mcp-protocol-version': '1999-01-01' }, 400, 'unsupported_version'],
    ])('%s', async (_, body, headers, status, fault) => {
      const answered = await post(body, headers);
      expect([answered.status, answered.context.fault]).toEqual([status, fault]);
      expect(answered.groups.sessionless).not.toHaveBeenCalled();
    });
  });
});

describe('a GET', () => {
  it.each([
    ['opens the standalone stream', {}, undefined],
    ['with an empty event id does the same', { 'last-event-id': '' }, undefined],
    [
      'with an event id resumes',
      { 'last-event-id': formatEventId(3, { epoch: 5, seq: 7 }) },
      { stream: 3, epoch: 5, seq: 7 },
    ],
  ])('%s', async (_, headers, after) => {
    const { listen } = await send({ headers: { ...stream, ...session, ...headers } });
    expect(listen?.mock.calls[0]?.[0]).toEqual(after);
  });

  it.each([
    ['of an unknown session', {}, 404, 'unknown_session'],
    ['of an unknown session, whatever its event id', { 'last-event-id': 'what' }, 404, 'unknown_session'],
  ])('%s is refused', async (_, headers, status, fault) => {
    const sessions = { anywhere: () => 'unknown_session' as const, open: () => undefined };
    const answered = await send({ headers: { ...stream, ...session, ...headers } }, { sessions });
    expect([answered.status, answered.context.fault]).toEqual([status, fault]);
  });
});

describe('a DELETE', () => {
  it('ends the session that it names', async () => {
    const { anywhere, remove } = await send({ method: 'DELETE', headers: session });
    expect(anywhere.mock.calls[0]?.[0].key).toBe(keyFromId('its-id'));
    expect(remove).toHaveBeenCalledTimes(1);
  });
});
