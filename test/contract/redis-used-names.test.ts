import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { waitFor } from '../support/wait-for.ts';
import { freshPrefix, openRedisStore } from './redis-fixture.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis?.stop());

test('[B19] a name is used by one of several instances that come together, and by none until it expires', async () => {
  const prefix = freshPrefix();
  const open = async () => {
    const { usedNames, ...store } = await openRedisStore({ url: redis.url, prefix });
    if (usedNames === undefined) throw new Error('unreachable');
    return { ...store, usedNames };
  };
  const stores = await Promise.all([open(), open(), open()]);
  const uses = await Promise.all([...stores, ...stores].map(({ usedNames }) => usedNames.use('a', 60_000)));
  expect(uses.filter((isFirst) => isFirst)).toHaveLength(1);
  const [{ usedNames }] = stores;
  expect(await usedNames.use('b', 30)).toBe(true);
  await waitFor(() => usedNames.use('b', 1));
  expect(await usedNames.use('a', 60_000)).toBe(false);
  await Promise.all(stores.map((store) => store.close()));
});
