import { describe } from 'vitest';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { startRedisSentinel } from '../support/redis-sentinel.ts';
import { redisStores, startedForAll } from './redis-fixture.ts';
import { storeContract } from './store-contract.ts';

/** The whole contract where Redis is several servers. `redis-cluster.test.ts` and `redis-sentinel.test.ts` test what is special there. */

describe.each([
  { name: 'redis cluster', start: () => startRedisCluster() },
  { name: 'redis sentinel', start: () => startRedisSentinel() },
])('$name', ({ name, start }) => {
  const redis = startedForAll<{ readonly url: string; stop(): unknown }>(start);
  storeContract(
    name,
    redisStores(() => ({ url: redis().url })),
    { modelRuns: 30 },
  );
});
