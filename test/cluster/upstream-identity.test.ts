import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';
import { contentsOfRedis } from '../support/redis-contents.ts';
import { clientSecret, startTokenEndpoint, type TokenEndpoint } from '../support/token-endpoint.ts';
import { startTokenServer, type TokenServer, toldToken } from '../support/token-server.ts';
import { waitFor } from '../support/wait-for.ts';
import { startFastCluster, statusOf } from './fast.ts';

const publicUrl = 'https://mcp.example.com';

let folder: string;
let issuer: Issuer;
let endpoint: TokenEndpoint;
let server: TokenServer;
let cluster: Cluster;
beforeAll(async () => {
  [issuer, endpoint] = await Promise.all([startIssuer(), startTokenEndpoint()]);
  server = await startTokenServer((token) => endpoint.userOf(token) !== undefined);
  folder = await mkdtemp(join(tmpdir(), 'gangway-identity-'));
  const identity = { grant: 'token_exchange', tokenUrl: endpoint.url, clientId: 'gateway', clientSecret };
  const crm = { url: server.urls.http, era: 'legacy', identity };
  // A gateway with one server would try it at the start.
  const config = { mcpServers: { crm, other: { command: process.execPath } } };
  const file = join(folder, 'gangway.json');
  await writeFile(file, JSON.stringify(config));
  const oauth = ['--auth.oauth.issuers', issuer.url, '--public-url', publicUrl];
  const args = ['--log-level', 'trace', '--transport', 'http', ...oauth, '--config', file];
  cluster = await startFastCluster({ instances: 2, args });
  const headers = await bearing('nobody');
  for (const instance of [0, 1]) {
    const isSettled = async () => (await statusOf(urlOf(instance), 'no-such-session', 'POST', headers)) === 404;
    await waitFor(isSettled, { what: 'unknown sessions to be told', deadlineMs: 20_000 });
  }
});
afterAll(async () => {
  await cluster?.stop();
  await issuer?.close();
  endpoint?.close();
  server?.close();
  await rm(folder, { recursive: true, force: true });
});

const urlOf = (instance: number): string => `${cluster.instances[instance]?.baseUrl}/crm/mcp`;
const sent: string[] = [];
const bearing = async (sub: string, claims: object = {}): Promise<{ authorization: string }> => {
  const token = await issuer.token({ claims: { sub, aud: `${publicUrl}/crm/mcp`, ...claims } });
  sent.push(token);
  return { authorization: `Bearer ${token}` };
};

/** The token that the server got with a call. */
async function tokenOfCall(session: Session, headers?: Record<string, string>): Promise<string> {
  const { messages } = await session.request('tools/call', { name: 'token', arguments: {} }, headers && { headers });
  return toldToken(messages[0]?.result?.content[0].text ?? '');
}

/** No token of a user or of the server stays in Redis, and none is in a log. */
async function expectNoToken(): Promise<void> {
  const isSecret = (text: string): boolean =>
    /upstream-token-\d/.test(text) || [clientSecret, ...sent].some((secret) => text.includes(secret));
  expect(isSecret(await contentsOfRedis(cluster.redis.url))).toBe(false);
  for (const gateway of cluster.instances) expect(isSecret(gateway.stdout() + gateway.stderr())).toBe(false);
}

test('[P11] [P12] the owner exchanges the token of a request to another instance, for its user alone', async () => {
  const [alice, bob] = await Promise.all([bearing('alice'), bearing('bob')]);
  const [first, second] = await Promise.all([
    initialize(urlOf(0), { headers: alice }),
    initialize(urlOf(1), { headers: bob }),
  ]);
  for (const instance of [1, 0]) {
    expect(await tokenOfCall(first.at(urlOf(instance)))).toMatch(/-of-alice$/);
    expect(await tokenOfCall(second.at(urlOf(instance)))).toMatch(/-of-bob$/);
    for (const method of ['POST', 'GET', 'DELETE'])
      expect(await statusOf(urlOf(instance), first.id, method, bob)).toBe(404);
  }
  const newer = await bearing('alice', { jti: 'newer' });
  expect(await tokenOfCall(first.at(urlOf(1)), newer)).toMatch(/-of-alice$/);
  // The token travels between the instances; neither the server nor Redis or a log may show it.
  for (const { headers } of server.seen) {
    expect(headers.authorization).toMatch(/^Bearer upstream-token-\d+-of-(?:alice|bob)$/);
    expect(Object.keys(headers).join()).not.toContain('subject');
  }
  await expectNoToken();
});

test('a refused exchange reaches the client by way of another instance: 502, and never a 401', async () => {
  const session = await initialize(urlOf(0), { headers: await bearing('carol') });
  endpoint.withdraw();
  endpoint.fault = 'invalid_grant';
  const call = { name: 'token', arguments: {} };
  const { status, json, headers } = await session.at(urlOf(1)).request('tools/call', call);
  expect([status, json.error.data.reason]).toEqual([502, 'upstream_token_refused']);
  expect(headers['www-authenticate']).toBeUndefined();
  endpoint.fault = undefined;
});

// Last: an instance is lost.
test('[P3] [P11] the next owner exchanges the token of the request that made it take over', async () => {
  const session = await initialize(urlOf(0), { headers: await bearing('dora') });
  const before = await tokenOfCall(session);
  await cluster.kill(0);
  expect(await statusOf(urlOf(1), session.id, 'POST', await bearing('mallory'))).toBe(404);
  const newer = await bearing('dora', { jti: 'newer' });
  const after = await tokenOfCall(session.at(urlOf(1)), newer);
  expect(after).toMatch(/-of-dora$/);
  expect(after).not.toBe(before);
  const exchanged = endpoint.requests.at(-1)?.parameters.get('subject_token');
  expect(`Bearer ${exchanged}`).toBe(newer.authorization);
  await expectNoToken();
});
