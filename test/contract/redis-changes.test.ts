import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/core/store/store.ts';
import { startNetProxy } from '../support/net-proxy.ts';
import { startRedis } from '../support/redis-server.ts';
import { waitFor } from '../support/wait-for.ts';
import { freshPrefix, openRedisStore, startedForAll, untilAnswered } from './redis-fixture.ts';

describe('changes in Redis', () => {
  const redis = startedForAll(() => startRedis());

  async function follow(store: Store) {
    const heard: string[] = [];
    await store.changes.subscribe('a', {
      onChange: (text) => heard.push(text.toString()),
      onMissed: () => heard.push('missed'),
    });
    return { heard, hears: (text: string) => waitFor(() => heard.at(-1) === text, { what: text }) };
  }
  const tell = (store: Store, text: string) =>
    untilAnswered(async () => {
      await store.changes.publish('a', Buffer.from(text));
      return true;
    });

  it('[F10] are heard after the connection was lost, as long as they are kept', async () => {
    await using proxy = await startNetProxy(redis().port);
    const prefix = freshPrefix();
    const far = await openRedisStore({ url: proxy.urlOf(redis().url), prefix, commandTimeoutMs: 300 });
    const near = await openRedisStore({ url: redis().url, prefix });
    const { heard, hears } = await follow(far);
    await tell(near, 'before');
    await hears('before');
    proxy.cutAll();
    await tell(near, 'meanwhile');
    await hears('meanwhile');
    expect(heard).toEqual(['before', 'meanwhile']);
    await Promise.all([far.close(), near.close()]);
  });

  it('[F10] that were lost with the data of Redis are known to be missed', async () => {
    const store = await openRedisStore({ url: redis().url, prefix: freshPrefix() });
    const { heard, hears } = await follow(store);
    await tell(store, 'before');
    await tell(store, 'again');
    await hears('again');
    await redis().restart({ keepData: false });
    await tell(store, 'after');
    await hears('after');
    expect(heard.slice(0, 3)).toEqual(['before', 'again', 'missed']);
    await store.close();
  });

  it('[P8] are kept in a number, and one who lags more knows that it has missed some', async () => {
    const prefix = freshPrefix();
    const store = await openRedisStore({ url: redis().url, prefix });
    await tell(store, 'first');
    const { heard, hears } = await follow(store);
    // All in one turn of Redis, so that the reader cannot keep up.
    const script = `for n = 2, 1100 do redis.call('XADD', KEYS[1], 'MAXLEN', 1024, '*', 'n', n, 't', ARGV[1], 'd', n) end`;
    const [, fields] =
      ((await redis().command('XRANGE', `${prefix}:changes`, '-', '+')) as [string, string[]][])[0] ?? [];
    await redis().command('EVAL', script, '1', `${prefix}:changes`, fields?.[3] as string);
    await hears('1100');
    expect(heard[0]).toBe('missed');
    expect(heard).toHaveLength(1_025);
    await store.close();
  });
});
