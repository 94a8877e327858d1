import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { type GuardedServer, startGuardedServer, tokenOf } from '../support/guarded-server.ts';
import { type Answer, initialize, open, type Session } from '../support/http-client.ts';
import { connectOld } from '../support/old-client.ts';
import { contentsOfRedis } from '../support/redis-contents.ts';
import { waitFor } from '../support/wait-for.ts';
import { settle, startFastCluster, statusOf, urlOf } from './fast.ts';

const issuer = 'https://login.example.com';
const [ada, adaNext, bob] = [
  tokenOf({ iss: issuer, sub: 'ada', jti: 1 }),
  tokenOf({ iss: issuer, sub: 'ada', jti: 2 }),
  tokenOf({ iss: issuer, sub: 'bob' }),
] as const;
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

let server: GuardedServer;
let cluster: Cluster;
beforeAll(async () => {
  server = await startGuardedServer();
  const args = ['--log-level', 'trace', '--defaults.auth', 'upstream', server.url];
  cluster = await startFastCluster({ instances: 2, args });
  await settle(cluster);
});
afterAll(async () => {
  await cluster?.stop();
  server?.close();
});
beforeEach(() => {
  server.tokens.clear();
  server.narrow.clear();
  for (const token of [ada, adaNext]) server.tokens.set(token, 'ada');
  server.tokens.set(bob, 'bob');
});

const baseUrl = (instance: number): string => cluster.instances[instance]?.baseUrl ?? '';
const metadataUrl = (instance: number): string => `${baseUrl(instance)}/.well-known/oauth-protected-resource/mcp`;
const textOf = ({ messages }: Answer): unknown => messages.at(-1)?.result?.content[0].text;
const callUser = (session: Session, token: string): Promise<Answer> =>
  session.request('tools/call', { name: 'user', arguments: {} }, { headers: bearer(token) });
const lastSeen = (method: string) => server.seen.filter((seen) => seen.method === method).at(-1)?.authorization;

/** No token stays in Redis, and none is in a log. */
async function expectNoToken(): Promise<void> {
  const tokens = [ada, adaNext, bob];
  await waitFor(
    async () => {
      const contents = await contentsOfRedis(cluster.redis.url);
      return tokens.every((token) => !contents.includes(token));
    },
    { what: 'no token to be in Redis' },
  );
  const logs = cluster.instances.map((gateway) => gateway.stdout() + gateway.stderr()).join('\n');
  for (const token of tokens) expect(logs).not.toContain(token);
}

describe('[P11] [P12] a session at a server with its own OAuth, whose owner is another instance', () => {
  test('passes on the token of each request, and no token stays anywhere', async () => {
    const session = await initialize(urlOf(cluster, 0), { headers: bearer(ada) });
    expect(textOf(await callUser(session.at(urlOf(cluster, 1)), adaNext))).toBe('ada');
    expect(lastSeen('tools/call')).toBe(bearer(adaNext).Authorization);
    await expectNoToken();
  });

  test('does not exist for another user, at either instance', async () => {
    const session = await initialize(urlOf(cluster, 0), { headers: bearer(ada) });
    for (const instance of [0, 1])
      for (const method of ['POST', 'GET', 'DELETE'])
        expect(await statusOf(urlOf(cluster, instance), session.id, method, bearer(bob))).toBe(404);
    expect(textOf(await callUser(session.at(urlOf(cluster, 1)), ada))).toBe('ada');
  });

  test('has the challenge of the server in its refusals, with the metadata URL of the instance that was asked', async () => {
    const session = await initialize(urlOf(cluster, 0), { headers: bearer(ada) });
    const at = session.at(urlOf(cluster, 1));
    server.narrow.add(ada);
    const narrow = await at.request('tools/call', { name: 'admin' });
    expect([narrow.status, narrow.json.error.data]).toEqual([403, { reason: 'upstream_forbidden' }]);
    expect(narrow.headers['www-authenticate']).toBe('Bearer error="insufficient_scope", scope="mcp:use mcp:admin"');
    server.tokens.delete(ada);
    const expired = await at.request('tools/list');
    expect([expired.status, expired.json.error.data]).toEqual([401, { reason: 'upstream_unauthorized' }]);
    const challenge = `Bearer error="invalid_token", resource_metadata="${metadataUrl(1)}"`;
    expect(expired.headers['www-authenticate']).toBe(challenge);
    const { json } = await (await open(metadataUrl(1), { method: 'GET' })).answer();
    expect(json.resource).toBe(urlOf(cluster, 1));
    expect(textOf(await callUser(at, adaNext))).toBe('ada');
  });
});

test('[P11] [P12] a client of HTTP+SSE is refused on its stream, and goes on with another token, by way of any instance', async () => {
  const client = await connectOld(baseUrl(0), { headers: bearer(ada), initializeAt: baseUrl(1) });
  const call = (id: string) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'user', arguments: {} } });
  await client.post(call('first'), baseUrl(1));
  expect((await client.response('first')).result.content[0].text).toBe('ada');
  expect((await client.post(call('of bob'), baseUrl(1), bearer(bob))).status).toBe(404);
  server.tokens.delete(ada);
  for (const instance of [0, 1]) {
    expect((await client.post(call(`expired ${instance}`), baseUrl(instance))).status).toBe(202);
    expect((await client.response(`expired ${instance}`)).error.data).toEqual({ reason: 'upstream_unauthorized' });
  }
  await client.post(call('renewed'), baseUrl(1), bearer(adaNext));
  expect((await client.response('renewed')).result.content[0].text).toBe('ada');
  await expectNoToken();
  client.drop();
});

// Last: an instance is lost.
test('[P3] [P11] the next owner restores the session with the token of the request that made it take over', async () => {
  const session = await initialize(urlOf(cluster, 0), { headers: bearer(ada) });
  server.forgetSessions();
  server.tokens.delete(ada);
  await cluster.kill(0);
  const at = session.at(urlOf(cluster, 1));
  const expired = await callUser(at, ada);
  expect(expired.status).toBe(401);
  expect(expired.headers['www-authenticate']).toContain(metadataUrl(1));
  expect(await statusOf(urlOf(cluster, 1), session.id, 'POST', bearer(bob))).toBe(404);
  expect(textOf(await callUser(at, adaNext))).toBe('ada');
  expect(lastSeen('initialize')).toBe(bearer(adaNext).Authorization);
  await expectNoToken();
});
