import { describe, expect, it, vi } from 'vitest';
import { CredentialWatch } from '../../../src/auth/credential-watch.ts';
import {
  LegacyMessagesEndpoint,
  type LegacySseOptions,
  LegacySseStream,
} from '../../../src/http/endpoints/legacy-sse.ts';
import { formatLegacySseEventId, newEndpointToken } from '../../../src/http/replies/legacy-sse-resume-point.ts';
import { MessagesEndpoint } from '../../../src/http/replies/messages-endpoint.ts';
import type { Reason } from '../../../src/protocol/faults.ts';
import { formatEventId } from '../../../src/protocol/wire/event-id.ts';
import { accepted, faultAnswer, nothing, type Reply } from '../../../src/reply/reply.ts';
import type { SessionHandle } from '../../../src/session/session-handle.ts';
import { keyFromToken } from '../../../src/session/session-key.ts';
import { createHttpContext, type FakeRequest } from '../../support/http-context.ts';
import { alice, createAdmissionOptions } from '../admission-fixture.ts';

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const initialize = '{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}';
const json = { 'content-type': 'application/json' };
const token = newEndpointToken();

/** Sends an admitted request to one of the endpoints. */
function send(
  Endpoint: typeof LegacySseStream | typeof LegacyMessagesEndpoint,
  request: FakeRequest,
  refusal?: Reason,
  isListening = false,
  publicUrl?: string,
) {
  const post = vi.fn((_post: unknown, reply: Reply) => reply.answer(accepted));
  const listen = vi.fn((_after: unknown, reply: Reply) => reply.answer(nothing));
  const openOneStream = vi.fn<LegacySseOptions['sessions']['openOneStream']>((...parts) => parts[4].answer(accepted));
  const atToken = vi.fn(() => refusal ?? ({ post, listen } as unknown as SessionHandle));
  // Another gateway's client waits here unless the session is refused.
  const listenBeforeOpen = vi.fn<LegacySseOptions['sessions']['listenBeforeOpen']>((...parts) => {
    if (refusal === undefined || refusal === 'unknown_session') parts[5]?.();
    return refusal === 'unknown_session' ? undefined : refusal;
  });
  const tellBeforeOpen = vi.fn<LegacySseOptions['sessions']['tellBeforeOpen']>(() => isListening);
  const postBeforeOpen = vi.fn<LegacySseOptions['sessions']['postBeforeOpen']>((...parts) => {
    if (isListening) parts[4].answer(accepted);
    else parts[4].answer(faultAnswer('unknown_session', 1));
  });
  const { context, response } = createHttpContext(request);
  context.sender = { identity: { ...alice, scopes: undefined }, principal: alice.principal, forwarded: {} };
  context.logId = 'its id';
  const endpoint = new Endpoint({
    ...createAdmissionOptions(),
    sessions: { atToken, openOneStream, listenBeforeOpen, tellBeforeOpen, postBeforeOpen },
    watch: new CredentialWatch(),
    maxDepth: 10,
    heartbeatMs: 60_000,
    endpoint: new MessagesEndpoint({ streamPath: '/sse', messagesPath: '/messages', publicUrl }),
    reconnectDelayMs: 500,
  });
  endpoint.serve(context);
  return { context, response, post, listen, openOneStream, atToken, listenBeforeOpen, tellBeforeOpen, postBeforeOpen };
}

describe('the stream', () => {
  it.each<[string, FakeRequest, number, string]>([
    ['POST', { method: 'POST' }, 405, 'only_a_stream'],
    ['a client that reads no stream', { headers: { accept: 'application/json' } }, 406, 'not_acceptable'],
  ])('is refused to %s', (_, request, status, fault) => {
    const { context, response } = send(LegacySseStream, request);
    expect([response()?.status, context.fault]).toEqual([status, fault]);
  });

  it('begins with the URL for messages, with a new token each time', async () => {
    const streams = [send(LegacySseStream, {}), send(LegacySseStream, {})];
    await new Promise((resolve) => setImmediate(resolve));
    for (const { context } of streams) context.outgoing.destroy();
    const tokens = streams.map(
      ({ response }) => /data: \/messages\?token=([\w-]{43})\n/.exec(response()?.text ?? '')?.[1],
    );
    expect(streams[0]?.response()?.text).toContain('event: endpoint\n');
    expect(tokens).toEqual([expect.any(String), expect.any(String)]);
    expect(tokens[0]).not.toBe(tokens[1]);
    expect(streams[0]?.listenBeforeOpen).toHaveBeenCalledTimes(1);
  });

  it('is refused while too many clients wait', () => {
    const { response, context } = send(LegacySseStream, {}, 'too_many_sessions');
    expect([response()?.status, context.fault]).toEqual([503, 'too_many_sessions']);
  });

  const lastEventId = formatLegacySseEventId(token, formatEventId(0, { epoch: 5, seq: 7 }));

  it('is resumed with its last event id', () => {
    const { listen, context } = send(LegacySseStream, { headers: { 'last-event-id': lastEventId } });
    expect(listen.mock.calls[0]?.[0]).toEqual({ stream: 0, epoch: 5, seq: 7 });
    expect(context.sessionKey).toBe(keyFromToken(token, alice.principal));
  });

  it.each([
    ['a UUID', 'a3bb189e-8bf9-3888-9912-ace4e6543002'],
    ['a number', '42'],
    ['an id of a session that has ended', lastEventId],
  ])('of %s is a new one: an EventSource never comes back after an error', async (_, id) => {
    const { context, response } = send(LegacySseStream, { headers: { 'last-event-id': id } }, 'unknown_session');
    await new Promise((resolve) => setImmediate(resolve));
    context.outgoing.destroy();
    const [, newToken] = /data: \/messages\?token=([\w-]{43})\n/.exec(response()?.text ?? '') ?? [];
    expect(newToken).toEqual(expect.any(String));
    expect(newToken).not.toBe(token);
  });

  const forwarded = { 'x-forwarded-for': '192.0.2.1' };
  const agent = (name: string) => ({ 'user-agent': name });
  it.each<[string, Record<string, string>, string | undefined, string]>([
    ['no proxy', {}, undefined, '/messages'],
    ['no proxy, as its port shows', { host: '[::1]:8080', ...agent('curl/8') }, undefined, '/messages'],
    ['a proxy that adds no header, to an SDK', agent('python-httpx/0.28.1'), undefined, 'messages'],
    ['a proxy that adds no header, to Node.js', agent('node'), undefined, 'messages'],
    ['a proxy that keeps the Host', { host: '127.0.0.1:9000' }, undefined, 'messages'],
    ['a proxy that keeps a Host without a port', { host: 'mcp.example.com' }, undefined, 'messages'],
    [
      'a published port, to a client that appends it',
      { host: 'h:9000', ...agent('ReactorNetty/1') },
      undefined,
      '/messages',
    ],
    ['a proxy that adds only its path', { 'x-forwarded-prefix': '/gw' }, undefined, '/gw/messages'],
    ['a proxy', forwarded, undefined, 'messages'],
    ['a proxy that names its path', { ...forwarded, 'x-forwarded-prefix': '/gw/' }, undefined, '/gw/messages'],
    [
      'a proxy, to a client that appends it',
      { ...forwarded, 'user-agent': 'Java-http-client/17' },
      undefined,
      '/messages',
    ],
    ['a public URL', {}, 'https://mcp.example.com', '/messages'],
    ['a public URL with a path', forwarded, 'https://mcp.example.com/gw/', '/gw/messages'],
  ])('names an endpoint that is right behind %s', async (_, headers, publicUrl, endpoint) => {
    const request = { headers, localPort: headers['host'] === undefined ? undefined : 8_080 };
    const { context, response } = send(LegacySseStream, request, undefined, false, publicUrl);
    await new Promise((resolve) => setImmediate(resolve));
    context.outgoing.destroy();
    expect(response()?.text).toContain(`data: ${endpoint}?token=`);
  });

  it('names an endpoint that is right for a stream whose path ends with a slash', async () => {
    const { context, response } = send(LegacySseStream, { url: '/sse/', headers: forwarded });
    await new Promise((resolve) => setImmediate(resolve));
    context.outgoing.destroy();
    expect(response()?.text).toContain('data: ../messages?token=');
  });
});

describe('a POST of messages', () => {
  const url = `/messages?token=${token}`;
  const post = async (request: FakeRequest, refusal?: Reason, isListening?: boolean) => {
    const sent = send(
      LegacyMessagesEndpoint,
      { method: 'POST', url, headers: json, body: [ping], ...request },
      refusal,
      isListening,
    );
    await vi.waitFor(() => expect(sent.response()).toBeDefined());
    return sent;
  };
  const modern =
    '{"jsonrpc":"2.0","id":3,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}';

  it.each<[string, FakeRequest, number, string]>([
    ['GET', { method: 'GET' }, 405, 'only_messages'],
    ['another type', { headers: {} }, 415, 'bad_content_type'],
    ['no token', { url: '/messages' }, 404, 'unknown_token'],
    ['two tokens', { url: `${url}&token=${token}` }, 404, 'unknown_token'],
    ['a token of another form', { url: '/messages?token=what' }, 404, 'unknown_token'],
    ['no JSON', { body: ['{'] }, 400, 'not_json'],
  ])('is refused: %s', async (_, request, status, fault) => {
    const { context, response, atToken } = await post(request);
    expect([response()?.status, context.fault]).toEqual([status, fault]);
    expect(atToken).not.toHaveBeenCalled();
  });

  it('goes to the session of its token, whatever its Accept', async () => {
    const { post: posted, response, context } = await post({ headers: { ...json, accept: 'text/html' } });
    expect(posted.mock.calls[0]?.[0]).toMatchObject({ isBatch: false, messages: [{ method: 'ping' }] });
    expect([response()?.status, context.sessionKey]).toEqual([202, keyFromToken(token, alice.principal)]);
  });

  it('with initialize opens the session of its token', async () => {
    const { openOneStream, atToken } = await post({ body: [initialize] });
    expect(openOneStream.mock.calls[0]).toMatchObject([token, {}, alice.principal, { method: 'initialize' }, {}]);
    expect(atToken).not.toHaveBeenCalled();
  });

  it('with initialize in a batch opens no session', async () => {
    const { openOneStream, atToken } = await post({ body: [`[${initialize}]`] });
    expect([openOneStream.mock.calls.length, atToken.mock.calls.length]).toEqual([0, 1]);
  });

  it('of the modern era is refused on the stream of a client that has no session yet', async () => {
    const { response, context, tellBeforeOpen } = await post({ body: [modern] }, 'unknown_session', true);
    expect([response()?.status, context.fault]).toEqual([202, 'modern_not_served']);
    const error = JSON.parse(tellBeforeOpen.mock.calls[0]?.[2].toString() ?? '');
    expect(error).toMatchObject({ id: 3, error: { code: -32022, data: { requested: '2026-07-28' } } });
    expect(error.error.data.supported).toContain('2025-11-25');
  });

  it('of the modern era is refused with its POST if nobody listens', async () => {
    const { response, context } = await post({ body: [modern] }, 'unknown_session');
    expect([response()?.status, context.fault]).toEqual([400, 'modern_not_served']);
  });

  it('of a client that listens to a new stream goes on without initialize', async () => {
    const { response, postBeforeOpen } = await post({}, 'unknown_session', true);
    expect(postBeforeOpen.mock.calls[0]?.[3]).toMatchObject({ id: 1, messages: [{ method: 'ping' }] });
    expect(response()?.status).toBe(202);
  });

  it('to an unknown session is refused under its id, in the words of its transport', async () => {
    const { context, response } = await post({}, 'unknown_session');
    expect(context.fault).toBe('unknown_token');
    expect(JSON.parse(response()?.text ?? '')).toMatchObject({ id: 1 });
  });
});
