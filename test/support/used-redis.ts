import { createKeys } from '../../src/features/redis/keys.ts';
import { type RedisOptions, type RedisServer, startRedis } from './redis-server.ts';

const ageMs = 24 * 60 * 60 * 1_000;

/**
 * A Redis that gateways have used for a day. With a new Redis, instances wait for a lease and two seconds before they
 * take over a session or report it missing, because owners may still register.
 */
export async function startUsedRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const redis = await startRedis(options);
  await makeOld(redis);
  return redis;
}

/** Makes the data of a Redis a day old, also of one that has none yet. */
export async function makeOld(redis: RedisServer): Promise<void> {
  await redis.cli('SET', createKeys('gangway').storeGeneration, `used:${Date.now() - ageMs}`);
}
