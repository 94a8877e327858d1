import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { proofAlgorithms } from '../../src/core/auth/challenges.ts';
import { startCluster } from '../support/cluster.ts';
import type { Gateway } from '../support/gateway.ts';
import { everythingFixture, modernFixture } from '../support/gateway.ts';
import { type Answer, initialize, open, post, type Session } from '../support/http-client.ts';
import { answerWith, type Issuer, startIssuer, usualAudience } from '../support/issuer.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern } from '../support/modern-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectWebSocket, refusedHandshake, webSocketUrlOf } from '../support/websocket-client.ts';

const publicUrl = 'https://mcp.example.com';
const wellKnown = '/.well-known/oauth-protected-resource';
const rules = [
  '--defaults.scopes.required',
  'use',
  '--defaults.scopes.tools',
  'echo=read',
  '--defaults.scopes.tools',
  'test_*=read write',
];

let issuer: Issuer;
let gateway: LocalGateway;
const argsFor = (of: Issuer, more: readonly string[] = rules): string[] => [
  ...['--auth.oauth.issuers', of.url, '--public-url', publicUrl],
  ...more,
];
beforeAll(async () => {
  issuer = await startIssuer();
  const args = ['--log-level', 'trace', ...argsFor(issuer)];
  gateway = await startLocalGateway({ args, command: everythingFixture, isStoppedWithTest: false });
});
afterAll(async () => {
  await gateway.stop();
  await issuer.close();
});

const bearing = async (scope: string, claims: object = {}, of = issuer): Promise<{ authorization: string }> => ({
  authorization: `Bearer ${await of.token({ claims: { scope, ...claims } })}`,
});
const message = (method: string, params?: object) => ({ jsonrpc: '2.0', id: 1, method, ...(params && { params }) });
const call = (name: string) => message('tools/call', { name, arguments: { text: 'hi' } });
const initializing = message('initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'raw', version: '1' },
});
const challenge = (path: string, parameters: { error?: string; error_description?: string; scope: string }): string => {
  const all = { realm: 'mcp-gangway', ...parameters, resource_metadata: `${publicUrl}${wellKnown}${path}` };
  return `Bearer ${Object.entries(all)
    .map(([key, value]) => `${key}="${value}"`)
    .join(', ')}`;
};
const get = async (url: string, headers: object = {}): Promise<Answer> =>
  (await open(url, { method: 'GET', headers: { accept: 'text/event-stream', ...headers } })).answer();

describe('the metadata of a resource', () => {
  test('is at the well-known path of each endpoint, for pages of any origin, without a token', async () => {
    for (const path of ['/mcp', '/sse', '/ws', '/everything-server/mcp']) {
      const { status, headers, json } = await get(gateway.baseUrl + wellKnown + path);
      expect(status).toBe(200);
      expect(headers['access-control-allow-origin']).toBe('*');
      expect(json).toEqual({
        resource: publicUrl + path,
        authorization_servers: [issuer.url],
        scopes_supported: ['use'],
        bearer_methods_supported: ['header'],
        dpop_signing_alg_values_supported: proofAlgorithms,
      });
    }
    expect((await get(gateway.baseUrl + wellKnown)).json.resource).toBe(usualAudience);
    expect((await get(`${gateway.baseUrl + wellKnown}/other`)).status).toBe(404);
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'GET' };
    const preflight = await (await open(gateway.baseUrl + wellKnown, { method: 'OPTIONS', headers })).answer();
    expect(preflight).toMatchObject({ status: 204, headers: { 'access-control-allow-origin': '*' } });
  });
});

test('[B19] the gateway is no authorization server: it offers no registration, login or token', async () => {
  const paths = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'];
  for (const path of [...paths, `${paths[0]}/mcp`, '/register', '/authorize', '/token']) {
    const authorized = await bearing('use');
    expect((await get(gateway.baseUrl + path)).status).toBe(404);
    expect((await post(gateway.baseUrl + path, { redirect_uris: ['http://localhost/'] }, authorized)).status).toBe(404);
  }
});

describe('a request without a token that holds', () => {
  test('[B19] gets 401 on every face, and is told where tokens for it come from', async () => {
    const wrong = [undefined, 'Bearer abc', `Bearer ${await issuer.token({ claims: { aud: publicUrl } })}`];
    for (const authorization of wrong) {
      const headers = authorization === undefined ? {} : { authorization };
      const error_description = authorization?.includes('.')
        ? 'The access token was issued for another resource'
        : 'The credential is neither a known key nor an access token that can be read here';
      const error = authorization === undefined ? {} : { error: 'invalid_token', error_description };
      const at = (path: string) => gateway.baseUrl + path;
      const refused = (path: string) => ({
        status: 401,
        headers: { 'www-authenticate': challenge(path, { ...error, scope: 'use' }) },
      });
      expect(await post(gateway.url, initializing, headers)).toMatchObject(refused('/mcp'));
      expect(await callModern(gateway.url, 'echo', { text: 'hi' }, { headers })).toMatchObject(refused('/mcp'));
      expect(await get(gateway.url, { ...headers, 'mcp-session-id': 'x' })).toMatchObject(refused('/mcp'));
      const deleted = await open(gateway.url, { method: 'DELETE', headers: { ...headers, 'mcp-session-id': 'x' } });
      expect(deleted).toMatchObject(refused('/mcp'));
      expect(await get(at('/sse'), headers)).toMatchObject(refused('/sse'));
      expect(await post(at('/messages?token=x'), initializing, headers)).toMatchObject(refused('/sse'));
      expect(await refusedHandshake(webSocketUrlOf(gateway.url), { headers })).toMatchObject(refused('/ws'));
    }
  });

  test('[B19] gets 401 also with a token in the query alone', async () => {
    const token = await issuer.token({ claims: { scope: 'use' } });
    expect((await post(`${gateway.url}?access_token=${token}`, initializing)).status).toBe(401);
  });

  test('[B19] gets 401 where its token is for another server of this gateway', async () => {
    const file = join(tmpdir(), `gangway-tokens-${process.pid}.json`);
    onTestFinished(() => rm(file, { force: true }));
    const [command, ...args] = everythingFixture;
    await writeFile(file, JSON.stringify({ mcpServers: { a: { command, args }, b: { command, args } } }));
    const both = await startLocalGateway({
      args: [...argsFor(issuer, ['--auth.oauth.audiences', 'api://all']), '--config', file],
    });
    const openAt = async (name: string, aud: string): Promise<number> =>
      (await post(`${both.baseUrl}/${name}/mcp`, initializing, await bearing('', { aud }))).status;
    expect(await openAt('a', `${publicUrl}/a/mcp`)).toBe(200);
    expect(await openAt('b', `${publicUrl}/a/mcp`)).toBe(401);
    expect(await openAt('b', `${publicUrl}/b/mcp`)).toBe(200);
    expect(await openAt('b', 'api://all')).toBe(200);
    expect((await get(both.baseUrl + wellKnown)).status).toBe(404);
  });
});

describe('a token with too few scopes', () => {
  const refusal = (scope: string, path = '/mcp') => ({
    status: 403,
    headers: { 'www-authenticate': challenge(path, { error: 'insufficient_scope', scope }) },
  });

  test('[B20] gets 403 for whatever it asks, with what every request needs', async () => {
    const headers = await bearing('read');
    expect(await post(gateway.url, initializing, headers)).toMatchObject(refusal('use read'));
    expect(await get(`${gateway.baseUrl}/sse`, headers)).toMatchObject(refusal('use read', '/sse'));
    expect(await refusedHandshake(webSocketUrlOf(gateway.url), { headers })).toMatchObject(refusal('use read', '/ws'));
  });

  test('[B20] gets 403 for a tool that needs more, with all that it needs, and its session goes on', async () => {
    const session = await initialize(gateway.url, { headers: await bearing('use') });
    const answer = await session.request('tools/call', { name: 'test_simple_text', arguments: {} });
    expect(answer).toMatchObject(refusal('use read write'));
    expect(answer.json).toMatchObject({
      id: 1,
      error: { data: { reason: 'insufficient_scope', scope: 'use read write' } },
    });
    const more = await bearing('use read write');
    const params = { name: 'test_simple_text', arguments: {} };
    expect((await session.request('tools/call', params, { headers: more })).messages[0]).toHaveProperty('result');
    await session.delete();
  });

  test('[B20] gets 403 for a batch of which one call needs more, and nothing of it is done', async () => {
    const session = await initialize(gateway.url, { version: '2025-03-26', headers: await bearing('use') });
    const batch = [
      { ...message('ping'), id: 7 },
      { ...call('echo'), id: 8 },
      { ...call('test_simple_text'), id: 9 },
    ];
    const answer = await (await session.send(batch)).answer();
    expect(answer).toMatchObject(refusal('use read write'));
    expect(answer.json.id).toBeNull();
  });

  test('[B20] gets 403 in the modern era, whatever the header says', async () => {
    const headers = await bearing('use');
    expect(await callModern(gateway.url, 'echo', { text: 'hi' }, { headers })).toMatchObject(refusal('use read'));
    const named = { ...headers, 'Mcp-Name': 'other' };
    expect(await callModern(gateway.url, 'echo', { text: 'hi' }, { headers: named })).toMatchObject(
      refusal('use read'),
    );
    const more = await bearing('use read');
    expect((await callModern(gateway.url, 'echo', { text: 'hi' }, { headers: more })).status).toBe(200);
    const other = await callModern(gateway.url, 'echo', { text: 'hi' }, { headers: { ...more, 'Mcp-Name': 'list' } });
    expect(other.status).toBe(400);
  });

  test('[B20] gets 403 at a modern server', async () => {
    const modern = await startLocalGateway({ args: argsFor(issuer), command: modernFixture });
    const called = async (scope: string) =>
      callModern(modern.url, 'echo', { text: 'hi' }, { headers: await bearing(scope) });
    expect(await called('use')).toMatchObject(refusal('use read'));
    expect((await called('use read')).status).toBe(200);
  });

  test('[B20] gets 403 from the endpoint for messages of HTTP+SSE', async () => {
    const headers = await bearing('use');
    const stream = await open(`${gateway.baseUrl}/sse`, {
      method: 'GET',
      headers: { accept: 'text/event-stream', ...headers },
    });
    onTestFinished(() => stream.drop());
    expect(stream).toMatchObject({ status: 200 });
    const { data = '' } = await stream.events.next(({ event }) => event === 'endpoint');
    const endpoint = gateway.baseUrl + data;
    expect((await post(endpoint, { ...initializing, id: 0 }, headers)).status).toBe(202);
    await stream.nextMessage(({ id }) => id === 0);
    expect(await post(endpoint, call('echo'), headers)).toMatchObject(refusal('use read', '/sse'));
    expect((await post(endpoint, call('echo'), await bearing('use read'))).status).toBe(202);
    expect(await stream.nextMessage(({ id }) => id === 1)).toHaveProperty('result');
  });

  test('[B20] gets an error on a WebSocket, which names all that is needed', async () => {
    const client = await connectWebSocket(webSocketUrlOf(gateway.url), { headers: await bearing('use') });
    await client.initialize();
    expect(await client.callTool('echo', { text: 'hi' })).toMatchObject({
      error: { data: { reason: 'insufficient_scope', scope: 'use read' } },
    });
    expect(await client.request('ping')).toHaveProperty('result');
  });
});

describe('a session', () => {
  const unknown = async (headers: object): Promise<Answer> =>
    post(gateway.url, message('ping'), { ...headers, 'mcp-session-id': 'of-nobody' });
  const ping = async (session: Session, headers: object): Promise<Answer> =>
    post(gateway.url, message('ping'), { ...headers, 'mcp-session-id': session.id });

  test('[S02] is there for another token of the same user and client, and for nobody else', async () => {
    const session = await initialize(gateway.url, { headers: await bearing('use') });
    expect((await ping(session, await bearing('use', { jti: 'another' }))).status).toBe(200);
    for (const claims of [{ sub: 'eve' }, { client_id: 'other' }, { client_id: undefined }]) {
      const headers = await bearing('use', claims);
      const { status, text } = await ping(session, headers);
      expect({ status, text }).toEqual({ status: 404, text: (await unknown(headers)).text });
    }
  });

  test('[S02] [C-02] is there for a narrower token of the same user, which may do only what it allows', async () => {
    const session = await initialize(gateway.url, { headers: await bearing('use read') });
    await session.callTool('echo', { text: 'hi' });
    const narrower = await bearing('use');
    expect((await ping(session, narrower)).status).toBe(200);
    const call = { name: 'echo', arguments: { text: 'hi' } };
    expect((await session.request('tools/call', call, { headers: narrower })).status).toBe(403);
    expect((await ping(session, await bearing('use read write'))).status).toBe(200);
  });

  test('[S03] has its open streams ended with the token, and goes on with the next one', async () => {
    const strict = await startLocalGateway({
      args: argsFor(issuer, []),
      command: everythingFixture,
    });
    const long = await bearing('');
    const session = await initialize(strict.url, { headers: long });
    // The gateway tolerates a clock difference of 30 s.
    const exp = Math.floor(Date.now() / 1_000) - 26;
    const brief = { ...(await bearing('', { exp })), 'mcp-session-id': session.id };
    const stream = await open(strict.url, { method: 'GET', headers: { accept: 'text/event-stream', ...brief } });
    expect(stream.status).toBe(200);
    await stream.events.ended;
    expect(Date.now()).toBeGreaterThanOrEqual((exp + 30) * 1_000);
    expect((await post(strict.url, message('ping'), brief)).status).toBe(401);
    expect((await session.request('ping')).messages[0]).toHaveProperty('result');
  });
});

test('[P12] a token is in no log, at no level', async () => {
  const { authorization } = await bearing('use read', { jti: 'canary' });
  const session = await initialize(gateway.url, { headers: { authorization } });
  await session.callTool('echo', { text: 'hi' });
  await post(gateway.url, message('ping'), { authorization: `${authorization}x` });
  await session.delete();
  await waitFor(() => gateway.logs().some(({ msg }) => /session ended/.test(String(msg))));
  const log = gateway.stderr();
  for (const part of authorization.slice('Bearer '.length).split('.').slice(1)) expect(log).not.toContain(part);
});

test('without its issuer the gateway starts, says so in the log, and answers 503 until it is there', async () => {
  const late = await startIssuer();
  onTestFinished(() => late.close());
  late.instead.set('/keys', answerWith(500));
  const waiting = await startLocalGateway({ args: argsFor(late), command: everythingFixture });
  const headers = await bearing('use', {}, late);
  const refused = await post(waiting.url, initializing, headers);
  expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '10' } });
  expect(refused.json.error.data.reason).toBe('token_not_checked');
  expect(refused.headers).not.toHaveProperty('www-authenticate');
  await waitFor(() =>
    waiting.logs().some(({ msg, issuer: of }) => /cannot fetch the keys/.test(String(msg)) && of === late.url),
  );
  expect((await post(waiting.url, initializing)).status).toBe(401);
});

test('API keys are good beside tokens', async () => {
  const args = argsFor(issuer, ['--auth.impliedScopes', 'admin=use read', ...rules]);
  const both = await startLocalGateway({
    args,
    command: everythingFixture,
    env: { GANGWAY_API_KEYS: `ada:sha256:${digestOfKey('0123456789abcdef0123456789abcdef')}` },
  });
  const session = await initialize(both.url, { headers: await bearing('admin') });
  expect(await session.callTool('echo', { text: 'hi' })).toHaveProperty('content');
  const key = { authorization: 'Bearer 0123456789abcdef0123456789abcdef' };
  const own = await initialize(both.url, { headers: key });
  expect(await own.callTool('test_simple_text')).toHaveProperty('content');
  expect((await own.request('ping', {}, { headers: await bearing('admin') })).status).toBe(404);
});

test('rules and principals hold on every instance', async () => {
  const cluster = await startCluster({ instances: 2, command: everythingFixture, args: argsFor(issuer) });
  const [first, second] = cluster.instances as [Gateway, Gateway];
  const session = await initialize(first.url, { headers: await bearing('use read') });
  const there = session.at(second.url);
  expect((await there.request('tools/call', { name: 'test_simple_text' })).status).toBe(403);
  expect((await there.request('ping', {}, { headers: await bearing('use read', { sub: 'eve' }) })).status).toBe(404);
  expect(await there.callTool('echo', { text: 'hi' })).toHaveProperty('content');
  const narrower = await bearing('use');
  for (const at of [there, session]) {
    expect((await at.request('ping', {}, { headers: narrower })).status).toBe(200);
    const call = { name: 'echo', arguments: { text: 'hi' } };
    expect((await at.request('tools/call', call, { headers: narrower })).status).toBe(403);
  }
});
