import { createKeys } from '../../src/store/redis/keys.ts';
import { type RedisOptions, type RedisServer, startRedis } from './redis-server.ts';

const ageMs = 24 * 60 * 60 * 1_000;

/**
 * A Redis that gateways have used for a day. In front of a new one instances wait, for a lease and two seconds, before they
 * take a session over or say that there is none: owners may still have to register theirs.
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
