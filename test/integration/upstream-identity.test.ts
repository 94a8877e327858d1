import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { initialize, post, type Session } from '../support/http-client.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { clientSecret, startTokenEndpoint, type TokenEndpoint } from '../support/token-endpoint.ts';
import { startTokenServer, type TokenServer, toldToken } from '../support/token-server.ts';

interface Setup {
  readonly endpoint: TokenEndpoint;
  readonly server: TokenServer;
  readonly gateway: LocalGateway;
  /** The endpoint of the server at the gateway. */
  readonly url: string;
}

const publicUrl = 'https://mcp.example.com';

/** Writes the secret and the configuration into files, as operators do. Returns the path of the configuration. */
async function writeConfiguration(server: string, identity: object): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-identity-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const secret = join(folder, 'secret');
  await writeFile(secret, `${clientSecret}\n`);
  const crm = { url: server, era: 'legacy', identity: { ...identity, clientSecret: `\${file:${secret}}` } };
  // A gateway with one server would try it at the start.
  const config = { mcpServers: { crm, other: { command: process.execPath } } };
  const file = join(folder, 'gangway.json');
  await writeFile(file, JSON.stringify(config));
  return file;
}

interface SetupOptions {
  readonly transport?: 'http' | 'sse';
  readonly issuer?: Issuer;
  readonly env?: Record<string, string>;
}

/** A gateway before a server that accepts only tokens of the endpoint. */
async function setUp(
  grant: 'client_credentials' | 'token_exchange',
  { transport = 'http', issuer, env }: SetupOptions = {},
): Promise<Setup> {
  const endpoint = await startTokenEndpoint();
  const server = await startTokenServer((token) => endpoint.userOf(token) !== undefined);
  onTestFinished(() => {
    endpoint.close();
    server.close();
  });
  const identity = {
    grant,
    tokenUrl: endpoint.url,
    clientId: 'gateway',
    audience: 'https://crm.example',
    scope: 'crm.read',
  };
  const oauth = issuer === undefined ? [] : ['--auth.oauth.issuers', issuer.url, '--public-url', publicUrl];
  const file = await writeConfiguration(server.urls[transport], identity);
  const gateway = await startLocalGateway({
    args: ['--log-level', 'trace', '--transport', transport, ...oauth, '--config', file],
    ...(env && { env }),
  });
  return { endpoint, server, gateway, url: `${gateway.baseUrl}/crm/mcp` };
}

/** The token that the server got with a call. */
async function tokenOfCall(session: Session, headers?: Record<string, string>): Promise<string> {
  const { messages } = await session.request('tools/call', { name: 'token', arguments: {} }, headers && { headers });
  return toldToken(messages[0]?.result?.content[0].text ?? '');
}

const initializing = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
};

/** No secret is in the log, at the most verbose level. */
const expectSilentLog = ({ gateway }: Setup): void => {
  const log = gateway.stderr();
  expect(log).not.toMatch(/upstream-token-\d|secret-of-the-gateway|eyJ[\w-]{10}/);
};

describe.each(['http', 'sse'] as const)("the gateway's own token, at a server of %s", (transport) => {
  test('[P12] is requested once for all sessions, and is in no log', async () => {
    const setup = await setUp('client_credentials', { transport });
    const sessions = await Promise.all(Array.from({ length: 5 }, () => initialize(setup.url)));
    const tokens = await Promise.all(sessions.map((session) => tokenOfCall(session)));
    expect(new Set(tokens)).toEqual(new Set(['upstream-token-1-of-gateway']));
    expect(setup.endpoint.requests).toHaveLength(1);
    const [{ parameters } = { parameters: new URLSearchParams() }] = setup.endpoint.requests;
    expect(Object.fromEntries(parameters)).toMatchObject({
      grant_type: 'client_credentials',
      audience: 'https://crm.example',
      scope: 'crm.read',
    });
    expectSilentLog(setup);
  });

  test('that the server refuses is renewed once, and the call that it had refused runs', async () => {
    const { url, endpoint } = await setUp('client_credentials', { transport });
    const session = await initialize(url);
    expect(await tokenOfCall(session)).toBe('upstream-token-1-of-gateway');
    endpoint.withdraw();
    expect(await tokenOfCall(session)).toBe('upstream-token-2-of-gateway');
    expect(endpoint.requests).toHaveLength(2);
  });
});

describe("the gateway's own token", () => {
  test('a server that refuses every token: 502, and no flood at the token endpoint', async () => {
    const { url, endpoint, server } = await setUp('client_credentials');
    const session = await initialize(url);
    await tokenOfCall(session);
    endpoint.lifetimeS = 0.001;
    endpoint.withdraw();
    const requests = server.seen.length;
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => session.request('tools/call', { name: 'token', arguments: {} })),
    );
    for (const { messages } of answers)
      expect(messages[0]?.error?.data.reason).toMatch(/server_unauthorized|upstream_/);
    expect(endpoint.requests.length).toBeLessThanOrEqual(3);
    expect(server.seen.length - requests).toBeLessThanOrEqual(20);
  });

  test.each([
    ['invalid_client', 'upstream_token_refused'],
    [503, 'upstream_token_unavailable'],
  ])('the token endpoint answers %s: 502 with a reason, and a line in the log', async (fault, reason) => {
    const setup = await setUp('client_credentials');
    setup.endpoint.fault = fault;
    const { status, json } = await post(setup.url, initializing);
    expect([status, json.error.data.reason]).toEqual([502, reason]);
    expect(setup.gateway.stderr()).toContain('cannot get an access token for the server');
    expect(setup.server.seen, 'nothing reached the server').toEqual([]);
    expectSilentLog(setup);
  });

  test('a token endpoint that fails later: calls get the reason, and recover with the endpoint', async () => {
    const { url, endpoint } = await setUp('client_credentials');
    const session = await initialize(url);
    endpoint.fault = 503;
    endpoint.withdraw();
    const { messages } = await session.request('tools/call', { name: 'token', arguments: {} });
    expect(messages[0]?.error?.data.reason).toBe('upstream_token_unavailable');
    endpoint.fault = undefined;
    await expect.poll(() => tokenOfCall(session), { timeout: 8_000 }).toMatch(/^upstream-token-\d+-of-gateway$/);
  });
});

describe("a user's token is exchanged", () => {
  const bearing = async (issuer: Issuer, sub: string, claims: object = {}): Promise<{ authorization: string }> => ({
    authorization: `Bearer ${await issuer.token({ claims: { sub, aud: `${publicUrl}/crm/mcp`, ...claims } })}`,
  });
  const setUpUsers = async (): Promise<Setup & { readonly issuer: Issuer }> => {
    const issuer = await startIssuer();
    onTestFinished(() => issuer.close());
    return { issuer, ...(await setUp('token_exchange', { issuer })) };
  };

  test('[P11] each user has an own token at the server, and the server never sees the token for the gateway', async () => {
    const setup = await setUpUsers();
    const { url, issuer, endpoint, server } = setup;
    const [alice, bob] = await Promise.all([bearing(issuer, 'alice'), bearing(issuer, 'bob')]);
    const sessions = await Promise.all([alice, bob].map((headers) => initialize(url, { headers })));
    const [first, second] = sessions as [Session, Session];
    expect(await tokenOfCall(first)).toMatch(/-of-alice$/);
    expect(await tokenOfCall(second)).toMatch(/-of-bob$/);
    expect(endpoint.requests).toHaveLength(2);
    expect(Object.fromEntries(endpoint.requests[0]?.parameters ?? [])).toMatchObject({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      audience: 'https://crm.example',
    });
    for (const { headers } of server.seen) {
      expect(headers.authorization).toMatch(/^Bearer upstream-token-\d+-of-(?:alice|bob)$/);
      expect(Object.keys(headers).join()).not.toContain('subject');
    }
    expectSilentLog(setup);
  });

  test("[P11] a session belongs to its user: another user's token does not find it", async () => {
    const { url, issuer } = await setUpUsers();
    const session = await initialize(url, { headers: await bearing(issuer, 'alice') });
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'token', arguments: {} } };
    const stolen = await post(url, call, {
      ...(await bearing(issuer, 'bob')),
      'Mcp-Session-Id': session.id,
    });
    expect(stolen.status).toBe(404);
  });

  test('a session continues with the newer token of its user', async () => {
    const { url, issuer, endpoint } = await setUpUsers();
    const session = await initialize(url, { headers: await bearing(issuer, 'alice') });
    expect(await tokenOfCall(session)).toBe('upstream-token-1-of-alice');
    const newer = await bearing(issuer, 'alice', { jti: 'second' });
    expect(await tokenOfCall(session, newer)).toBe('upstream-token-2-of-alice');
    expect(endpoint.mostAtOnce).toBe(1);
  });

  test('an API key cannot be exchanged: 403, and the key goes nowhere', async () => {
    const issuer = await startIssuer();
    onTestFinished(() => issuer.close());
    const key = 'key-of-carol-that-is-long-enough-for-a-key';
    const env = { GANGWAY_API_KEYS: `carol:sha256:${createHash('sha256').update(key).digest('hex')}` };
    const { url, endpoint, server } = await setUp('token_exchange', { issuer, env });
    const { status, json } = await post(url, initializing, { authorization: `Bearer ${key}` });
    expect([status, json.error.data.reason]).toEqual([403, 'access_token_required']);
    expect([endpoint.requests, server.seen]).toEqual([[], []]);
  });

  test("the user's token may not be exchanged: 502 with the reason, and never a 401 for the client", async () => {
    const { url, issuer, endpoint } = await setUpUsers();
    endpoint.fault = 'invalid_grant';
    const { status, json } = await post(url, initializing, await bearing(issuer, 'alice'));
    expect([status, json.error.data.reason]).toEqual([502, 'upstream_token_refused']);
    endpoint.fault = undefined;
    const other = await initialize(url, { headers: await bearing(issuer, 'bob') });
    expect(await tokenOfCall(other)).toMatch(/-of-bob$/);
  });
});
