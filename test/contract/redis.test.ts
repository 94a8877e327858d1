import { afterAll, beforeAll } from 'vitest';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { redisStores } from './redis-fixture.ts';
import { storeContract } from './store-contract.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis?.stop());

storeContract(
  'redis',
  redisStores(() => ({ url: redis.url })),
);
