import { describe, expect, it, vi } from 'vitest';
import { CredentialWatch } from '../../../src/core/auth/credential-watch.ts';
import type { Reason } from '../../../src/core/protocol/faults.ts';
import { accepted, faultAnswer } from '../../../src/core/reply/reply.ts';
import { keyFromToken } from '../../../src/core/session/session-key.ts';
import {
  LegacyMessagesEndpoint,
  LegacySseStream,
  newEndpointToken,
} from '../../../src/features/legacy-sse/legacy-sse.ts';
import { MessagesEndpoint } from '../../../src/features/legacy-sse/messages-endpoint.ts';
import type { SseSessions } from '../../../src/features/legacy-sse/sse-client.ts';
import { alice, createAdmissionOptions } from '../../core/http/admission-fixture.ts';
import { createHttpContext, type FakeRequest } from '../../support/http-context.ts';

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const json = { 'content-type': 'application/json' };
const token = newEndpointToken();

/** Sends an admitted request to one of the endpoints. */
function send(
  Endpoint: typeof LegacySseStream | typeof LegacyMessagesEndpoint,
  request: FakeRequest,
  refusal?: Reason,
  publicUrl?: string,
) {
  const hold = vi.fn<SseSessions['clients']['hold']>(() => undefined);
  const posted = vi.fn<SseSessions['clients']['post']>((_, __, reply) =>
    reply.answer(refusal === undefined ? accepted : faultAnswer(refusal, 1)),
  );
  const { context, response } = createHttpContext(request);
  context.sender = { identity: { ...alice, scopes: undefined }, principal: alice.principal, forwarded: {} };
  context.logId = 'its id';
  const endpoint = new Endpoint({
    ...createAdmissionOptions(),
    sessions: {
      openConnected: () => undefined,
      clients: { admit: () => refusal ?? (() => undefined), hold, release: () => undefined, post: posted },
    },
    sseOpenMs: 60_000,
    watch: new CredentialWatch(),
    maxDepth: 10,
    heartbeatMs: 60_000,
    endpoint: new MessagesEndpoint({ streamPath: '/sse', messagesPath: '/messages', publicUrl }),
    reconnectDelayMs: 500,
  });
  endpoint.serve(context);
  return { context, response, hold, posted };
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
    const [key] = streams[0]?.hold.mock.calls[0] ?? [];
    expect(key).toBe(keyFromToken(tokens[0] as string, alice.principal));
    expect(streams[0]?.context.sessionKey).toBe(key);
  });

  it('is refused while too many clients wait', () => {
    const { response, context } = send(LegacySseStream, {}, 'too_many_sessions');
    expect([response()?.status, context.fault]).toEqual([503, 'too_many_sessions']);
  });

  it.each([
    ['a UUID', 'a3bb189e-8bf9-3888-9912-ace4e6543002'],
    ['a number', '42'],
    ['an id of this gateway', `${token}.0.5-7`],
  ])('of %s is a new one: an EventSource never comes back after an error', async (_, id) => {
    const { context, response } = send(LegacySseStream, { headers: { 'last-event-id': id } });
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
    const { context, response } = send(LegacySseStream, request, undefined, publicUrl);
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
  const post = async (request: FakeRequest, refusal?: Reason) => {
    const sent = send(
      LegacyMessagesEndpoint,
      { method: 'POST', url, headers: json, body: [ping], ...request },
      refusal,
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
    const { context, response, posted } = await post(request);
    expect([response()?.status, context.fault]).toEqual([status, fault]);
    expect(posted).not.toHaveBeenCalled();
  });

  it('goes to the client of its token, whatever its Accept', async () => {
    const { posted, response, context } = await post({ headers: { ...json, accept: 'text/html' } });
    const [lookup, posting] = posted.mock.calls[0] ?? [];
    expect(posting).toMatchObject({ isBatch: false, messages: [{ method: 'ping' }] });
    expect(lookup).toMatchObject({ key: keyFromToken(token, alice.principal), principal: alice.principal });
    expect([response()?.status, context.sessionKey]).toEqual([202, lookup?.key]);
  });

  it('with a revision that nobody speaks is refused', async () => {
    const { context, posted } = await post({ headers: { ...json, 'mcp-protocol-version': '1999-01-01' } });
    expect([context.fault, posted.mock.calls.length]).toEqual(['unsupported_version', 0]);
  });

  it('of the modern era counts as refused, although its client learns that on the stream', async () => {
    const { response, context, posted } = await post({ body: [modern] });
    expect([response()?.status, context.fault, posted.mock.calls.length]).toEqual([202, 'modern_not_served', 1]);
  });

  it('to an unknown session is refused under its id, in the words of its transport', async () => {
    const { context, response } = await post({}, 'unknown_session');
    expect(context.fault).toBe('unknown_token');
    expect(JSON.parse(response()?.text ?? '')).toMatchObject({ id: 1 });
  });
});
