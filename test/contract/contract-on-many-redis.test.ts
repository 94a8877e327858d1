import { afterAll, beforeAll, describe } from 'vitest';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.ts';
import { type RedisSentinel, startRedisSentinel } from '../support/redis-sentinel.ts';
import { redisStores } from './redis-fixture.ts';
import { storeContract } from './store-contract.ts';

/** The whole contract where Redis is several servers. `redis-cluster.test.ts` and `redis-sentinel.test.ts` test what is special there. */

describe('a cluster of three masters', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  }, 60_000);
  afterAll(() => cluster?.stop());

  storeContract(
    'redis cluster',
    redisStores(() => ({ url: cluster.url })),
    { modelRuns: 30 },
  );
});

describe('a server found by sentinels', () => {
  let sentinel: RedisSentinel;
  beforeAll(async () => {
    sentinel = await startRedisSentinel();
  }, 60_000);
  afterAll(() => sentinel?.stop());

  storeContract(
    'redis sentinel',
    redisStores(() => ({ url: sentinel.url })),
    { modelRuns: 30 },
  );
});
