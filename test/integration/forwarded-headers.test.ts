import { randomUUID } from 'node:crypto';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { sendRaw } from '../hardening/raw-http.ts';
import { initialize, post, type Session } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { startTokenServer, type TokenServer, toldToken } from '../support/token-server.ts';
import { waitFor } from '../support/wait-for.ts';

let server: TokenServer;
const gateways = {} as Record<'sse' | 'http', LocalGateway>;
beforeAll(async () => {
  server = await startTokenServer();
  for (const transport of ['sse', 'http'] as const) {
    const forwarded = ['--defaults.forwardHeaders', 'Authorization', '--defaults.forwardHeaders', 'X-Team'];
    const args = ['--log-level', 'trace', '--transport', transport, ...forwarded, server.urls[transport]];
    gateways[transport] = await startLocalGateway({ args });
  }
});
afterAll(async () => {
  await Promise.all(Object.values(gateways).map((gateway) => gateway.stop()));
  server.close();
});

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
/** The token that the server got with a call. */
async function tokenOfCall(session: Session, headers?: Record<string, string>): Promise<string> {
  const params = { name: 'token', arguments: {} };
  const { messages } = await session.request('tools/call', params, headers && { headers });
  return toldToken(messages[0]?.result?.content[0].text ?? '');
}

describe.each(['sse', 'http'] as const)("a client's headers, with a server of %s", (transport) => {
  const urlOf = (): string => gateways[transport].url;
  const open = (token: string, more: object = {}): Promise<Session> =>
    initialize(urlOf(), { headers: { ...bearer(token), ...more } });

  test('[P12] that are on the list go on, no others do, and none of them is in the log', async () => {
    const session = await open('first-secret', { 'X-Team': 'team-secret', Cookie: 'c=1', 'X-Other': 'o' });
    expect(await tokenOfCall(session)).toBe('first-secret');
    const ofIt = server.seen.filter((seen) => seen.headers.authorization === 'Bearer first-secret');
    const { headers } = ofIt.at(-1) as (typeof server.seen)[number];
    expect(headers).toMatchObject({ authorization: 'Bearer first-secret', 'x-team': 'team-secret' });
    for (const name of ['cookie', 'x-other', 'origin']) expect(headers).not.toHaveProperty(name);
    expect(headers['mcp-session-id']).not.toBe(session.id);
    expect(headers.host).toBe(new URL(server.urls.sse).host);
    await session.delete();
    expect(gateways[transport].stderr()).not.toMatch(/-secret|Bearer/);
  });

  test('of the newest request go with it: a token that was refreshed works at once', async () => {
    const session = await open('a');
    expect(await tokenOfCall(session, bearer('b'))).toBe('b');
    expect(await tokenOfCall(session, bearer('c'))).toBe('c');
    await session.delete();
  });

  test('[P11] are not those of other requests: a session id without a token has no token', async () => {
    const [session, other] = await Promise.all([open('mine'), open('theirs')]);
    expect(await Promise.all([tokenOfCall(session), tokenOfCall(other)])).toEqual(['mine', 'theirs']);
    const params = { name: 'token', arguments: {} };
    const stolen = await post(
      urlOf(),
      { jsonrpc: '2.0', id: 'x', method: 'tools/call', params },
      { 'Mcp-Session-Id': session.id },
    );
    expect(stolen.messages[0]?.error?.data.reason).toBe('server_unauthorized');
    expect(await tokenOfCall(session)).toBe('mine');
    await Promise.all([session.delete(), other.delete()]);
  });

  test('[F28] restore a server that was away, the newest of them', async () => {
    const session = await open('old');
    expect(await tokenOfCall(session, bearer('new'))).toBe('new');
    const kinds = ['initialize', 'notifications/initialized', 'stream'] as const;
    const before = kinds.map((kind) => server.tokensOf(kind).length);
    server.restart();
    if (transport === 'http') await session.request('ping', {}, { headers: bearer('new') }); // only then it is noticed
    // Sessions of other tests may be restored as well, with tokens of their own.
    for (const [index, kind] of kinds.entries()) {
      const isThere = () => server.tokensOf(kind).slice(before[index]).includes('new');
      await waitFor(isThere, { what: `${kind} with the newest token` });
      expect(server.tokensOf(kind).slice(before[index])).not.toContain('old');
    }
    expect(await tokenOfCall(session, bearer('newer'))).toBe('newer');
    await session.delete();
  });

  test('without a token the server refuses the session, and the client is told so', async () => {
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    const { status, json } = await post(urlOf(), { jsonrpc: '2.0', id: 0, method: 'initialize', params });
    expect([status, json.error.data.reason]).toEqual([502, 'server_unauthorized']);
    expect(gateways[transport].stderr()).toContain('refused access (401)');
  });

  test('come from a client of the official SDK as it has them', async () => {
    const client = new Client({ name: 'sdk', version: '1' });
    // Sessions of other tests may be opened anew at the same server meanwhile.
    const [first, second] = [`sdk-${randomUUID()}`, `sdk-${randomUUID()}`];
    let token = first;
    const transport = new StreamableHTTPClientTransport(new URL(urlOf()), {
      fetch: (url, init) => {
        const headers = new Headers(init?.headers);
        headers.set('authorization', `Bearer ${token}`);
        return fetch(url, { ...init, headers });
      },
    });
    onTestFinished(() => client.close());
    // biome-ignore lint/suspicious/noExplicitAny: the SDK's transport is not typed for exactOptionalPropertyTypes
    await client.connect(transport as any);
    expect(server.tokensOf('initialize')).toContain(first);
    expect(server.tokensOf('initialize')).not.toContain(second);
    token = second;
    const { content } = await client.callTool({ name: 'token' });
    expect((content as { text: string }[]).map(({ text }) => toldToken(text))).toEqual([second]);
  });
});

describe('headers that go on', () => {
  const head = (...lines: string[]): string =>
    ['POST /mcp HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', 'Content-Length: 2', ...lines].join(
      '\r\n',
    );
  const statusFor = async (...lines: string[]): Promise<[number, string]> => {
    const { status, json } = await sendRaw(gateways.sse.port, `${head(...lines)}\r\n\r\n{}`);
    return [status, json.error.data.reason];
  };

  test('[B18] twice get 400: the server could take another one than who looked at them on the way', async () => {
    expect(await statusFor('X-Team: a', 'X-Team: b')).toEqual([400, 'duplicate_header']);
    expect(await statusFor('Authorization: a', 'authorization: a')).toEqual([400, 'duplicate_header']);
    expect(await statusFor('X-Other: a', 'X-Other: b')).toEqual([400, 'not_json_rpc']);
  });

  test('with characters beyond visible ASCII get 400', async () => {
    expect(await statusFor('X-Team: \u00e4')).toEqual([400, 'duplicate_header']);
    expect(await statusFor('X-Team: a\tb')).toEqual([400, 'duplicate_header']);
  });

  test('that are larger than the limit get 431', async () => {
    expect(await statusFor(`X-Team: ${'x'.repeat(8 * 1024)}`)).toEqual([431, 'forwarded_too_large']);
    expect(await statusFor(`X-Other: ${'x'.repeat(8 * 1024)}`)).toEqual([400, 'not_json_rpc']);
  });
});

test('[S16] no header for the next hop goes on, and a body in chunks goes on with its length', async () => {
  const session = await initialize(gateways.sse.url, { headers: bearer('chunks') });
  const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/chunks' });
  const lines = [
    'POST /mcp HTTP/1.1',
    'Host: localhost',
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `Mcp-Session-Id: ${session.id}`,
    'Authorization: Bearer chunks',
    'X-Team: for the gateway alone',
    'Connection: keep-alive, x-team, Te',
    'Te: trailers',
    'Keep-Alive: timeout=5',
    'Transfer-Encoding: chunked',
  ];
  const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  expect((await sendRaw(gateways.sse.port, `${lines.join('\r\n')}\r\n\r\n${chunks}`)).status).toBe(202);
  await waitFor(() => server.tokensOf('notifications/chunks').length > 0, { what: 'the notification' });
  const isIt = ({ what }: { what: string }): boolean => what === 'notifications/chunks';
  const { headers } = server.seen.find(isIt) as (typeof server.seen)[number];
  expect(headers).toMatchObject({ 'content-length': `${body.length}`, authorization: 'Bearer chunks' });
  for (const name of ['transfer-encoding', 'te', 'x-team']) expect(headers).not.toHaveProperty(name);
  expect(headers.connection).toBe('keep-alive');
  await session.delete();
});

test('[S16] a server gets no header of a client unless it is named', async () => {
  const args = ['--transport', 'sse', '--header', 'Authorization: Bearer own', server.urls.sse];
  const plain = await startLocalGateway({ args });
  const session = await initialize(plain.url, { headers: { ...bearer('client'), 'X-Team': 't' } });
  expect(await tokenOfCall(session)).toBe('own');
  expect(server.seen.at(-1)?.headers).not.toHaveProperty('x-team');
  await session.delete();
});
