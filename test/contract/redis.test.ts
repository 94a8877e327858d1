import { startRedis } from '../support/redis-server.ts';
import { redisStores, startedForAll } from './redis-fixture.ts';
import { storeContract } from './store-contract.ts';

const redis = startedForAll(() => startRedis());

storeContract(
  'redis',
  redisStores(() => ({ url: redis().url })),
);
