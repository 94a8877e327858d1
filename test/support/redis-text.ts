import { Redis } from 'ioredis';

/** Everything that a Redis holds, as text; of a stream the entries that are not deleted. */
export async function contentsOfRedis(url: string): Promise<string> {
  const redis = new Redis(url);
  const read: Record<string, (key: string) => Promise<unknown>> = {
    string: (key) => redis.get(key),
    hash: (key) => redis.hgetall(key),
    stream: (key) => redis.xrange(key, '-', '+'),
    list: (key) => redis.lrange(key, 0, -1),
    zset: (key) => redis.zrange(key, '0', '-1'),
    set: (key) => redis.smembers(key),
  };
  const keys = await redis.keys('*');
  const values = keys.map(async (key) => {
    const type = await redis.type(key);
    return type === 'none' ? undefined : (read[type] as (key: string) => Promise<unknown>)(key);
  });
  const text = JSON.stringify([keys, await Promise.all(values)]);
  redis.disconnect();
  return text;
}
