import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { startRedis } from '../support/redis-server.ts';
import { waitFor } from '../support/wait-for.ts';
import { aRecord } from './log-writer.ts';
import { freshPrefix, openRedisStore } from './redis-fixture.ts';

type Redis = Awaited<ReturnType<typeof startRedis>>;

/** Makes Redis refuse writes because it cannot save its data. Returns how to make it well again. */
async function breakDisk(redis: Redis): Promise<() => Promise<unknown>> {
  const directory = mkdtempSync(join(tmpdir(), 'gangway-redis-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  await redis.cli('CONFIG', 'SET', 'dir', directory);
  await redis.cli('CONFIG', 'SET', 'save', '3600 1000000');
  rmSync(directory, { recursive: true });
  await redis.cli('BGSAVE');
  await waitFor(async () => (await redis.cli('INFO', 'persistence')).includes('rdb_last_bgsave_status:err'), {
    what: 'the failed save',
  });
  return () => redis.cli('CONFIG', 'SET', 'stop-writes-on-bgsave-error', 'no');
}

const setReplicas = (redis: Redis, count: string) => redis.cli('CONFIG', 'SET', 'min-replicas-to-write', count);

test.each<[string, (redis: Redis) => Promise<() => Promise<unknown>>]>([
  ['has too few replicas', (redis) => setReplicas(redis, '1').then(() => () => setReplicas(redis, '0'))],
  [
    'is a replica',
    (redis) => redis.cli('REPLICAOF', '127.0.0.1', '1').then(() => () => redis.cli('REPLICAOF', 'NO', 'ONE')),
  ],
  ['cannot save its data', breakDisk],
])('[F13] [P7] a Redis that %s answers reads, and has recovered only when it takes writes', async (_, breakIt) => {
  const redis = await startRedis({ args: ['--enable-protected-configs', 'yes'] });
  const store = await openRedisStore({ url: redis.url, prefix: freshPrefix(), commandTimeoutMs: 1_000 });
  onTestFinished(() => store.close());
  await store.sessions.create('s', aRecord());
  let recoveries = 0;
  store.onRecovered(() => {
    recoveries += 1;
  });
  const mend = await breakIt(redis);
  for (let n = 0; n < 20; n += 1) {
    await expect(store.sessions.renew(['s'])).rejects.toMatchObject({ reason: 'unreachable' });
    await store.sessions.find('s').catch(() => undefined);
    await delay(25);
  }
  expect([recoveries, store.healthyForMs()]).toEqual([0, 0]);
  await mend();
  await waitFor(() => recoveries === 1, { what: 'the recovery' });
  await store.sessions.renew(['s']);
});

test('[F13] a Redis Cluster that lost a master has recovered only when all masters answer', async () => {
  const cluster = await startRedisCluster({ replicas: 1 });
  const store = await openRedisStore({ url: cluster.url, prefix: freshPrefix(), commandTimeoutMs: 500 });
  onTestFinished(() => store.close());
  const keys = Array.from({ length: 12 }, (_, index) => `session ${index}`);
  for (const key of keys) await store.sessions.create(key, aRecord());
  await delay(1_000);
  let recoveries = 0;
  store.onRecovered(() => {
    recoveries += 1;
  });
  const [lost] = await cluster.masters();
  await lost?.kill();
  let hasFailed = false;
  const renewAll = async (): Promise<boolean> => {
    const outcomes = await Promise.allSettled(keys.map((key) => store.sessions.renew([key])));
    const isWell = outcomes.every(({ status }) => status === 'fulfilled');
    hasFailed ||= !isWell;
    return isWell && hasFailed;
  };
  await waitFor(renewAll, { what: 'the failover', deadlineMs: 30_000 });
  await waitFor(() => recoveries > 0, { what: 'the recovery' });
  await delay(1_000);
  expect(recoveries).toBe(1);
}, 60_000);
