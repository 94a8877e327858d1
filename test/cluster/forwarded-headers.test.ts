import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { contentsOfRedis } from '../support/redis-contents.ts';
import { startTokenServer, type TokenServer, toldToken } from '../support/token-server.ts';
import { failuresOf, instancesOf, settle, startFastCluster } from './fast.ts';

let server: TokenServer;
let cluster: Cluster;
beforeAll(async () => {
  server = await startTokenServer();
  const args = [
    '--log-level',
    'trace',
    '--transport',
    'sse',
    '--defaults.forwardHeaders',
    'Authorization',
    server.urls.sse,
  ];
  cluster = await startFastCluster({ args });
  await settle(cluster);
});
afterAll(async () => {
  expect(failuresOf(cluster)).toEqual([]);
  await cluster.stop();
  server.close();
});

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

async function tokenOfCall(session: Session, token: string): Promise<string> {
  const options = { headers: bearer(token) };
  const { status, messages } = await session.request('tools/call', { name: 'token', arguments: {} }, options);
  const text = messages[0]?.result?.content[0].text;
  if (text === undefined) throw new Error(`No result, but ${status} ${JSON.stringify(messages)}`);
  return toldToken(text);
}

test('[P11] [P12] by way of any instance each request has its own token, and no token stays anywhere', async () => {
  const urls = instancesOf(cluster);
  const clients = await Promise.all(
    ['A', 'B'].map(async (name) => ({
      name,
      session: await initialize(urls[0], { headers: bearer(`${name}-start-secret`) }),
    })),
  );
  const calls = clients.flatMap(({ name, session }) =>
    Array.from({ length: 12 }, async (_, n) => {
      const token = `${name}-${n}-secret`;
      expect(await tokenOfCall(session.at(urls[n % 3] ?? ''), token)).toBe(token);
    }),
  );
  await Promise.all(calls);
  expect(await contentsOfRedis(cluster.redis.url)).not.toMatch(/-secret|Bearer/);
  for (const gateway of cluster.instances) expect(gateway.stdout() + gateway.stderr()).not.toMatch(/-secret|Bearer/);
  await Promise.all(clients.map(({ session }) => session.delete()));
});

test('[F01] a new owner opens the server with the token of the request that made it take over', async () => {
  const [first, second, third] = instancesOf(cluster);
  const session = await initialize(first, { headers: bearer('before') });
  expect(await tokenOfCall(session, 'before')).toBe('before');
  const streams = server.tokensOf('stream').length;
  await cluster.kill(0);
  // A list may be run again; a call that was on its way to the lost owner might have been run.
  expect((await session.at(second).request('tools/list', {}, { headers: bearer('after') })).status).toBe(200);
  expect(server.tokensOf('tools/list').at(-1)).toBe('after');
  expect(server.tokensOf('stream').slice(streams)).toEqual(['after']);
  expect(server.tokensOf('initialize').at(-1)).toBe('after');
  expect(await tokenOfCall(session.at(third), 'later')).toBe('later');
  await session.at(third).delete();
});
