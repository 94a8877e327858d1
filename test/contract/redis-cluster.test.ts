import { describe, expect, it } from 'vitest';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.ts';
import { waitFor } from '../support/wait-for.ts';
import { aRecord, createLogWriter, epoch } from './log-writer.ts';
import { freshPrefix, openRedisStore, startedForAll, untilAnswered } from './redis-fixture.ts';
import { textsOf } from './store-fixture.ts';

describe('a cluster of three masters', () => {
  const cluster = startedForAll(() => startRedisCluster());

  it('[S09] spreads sessions over the nodes, each with all its keys in one slot', async () => {
    const store = await openRedisStore({ url: cluster().url, prefix: freshPrefix() });
    for (let index = 0; index < 30; index += 1) await store.sessions.create(`{same}${index}`, aRecord());
    const sizes = await Promise.all(cluster().nodes.map(async (node) => Number(await node.cli('DBSIZE'))));
    for (const size of sizes) expect(size).toBeGreaterThan(0);
    await store.close();
  });

  it('follows a slot that has moved to another node, without sending anything twice', async () => {
    const prefix = freshPrefix();
    const store = await openRedisStore({ url: cluster().url, prefix });
    await store.sessions.create('s', aRecord());
    const writer = createLogWriter(store, 's');
    expect(await writer.append({ stream: 1, text: 'a' })).toBe('stored');
    await moveSlotOf(cluster(), prefix);
    expect(await writer.append({ stream: 1, text: 'b' })).toBe('stored');
    expect(textsOf(await store.log.read('s', 1, undefined, 10))).toEqual(['a', 'b']);
    await store.close();
  });

  it('[P7] loses a master: that costs time only: the same calls, asked again, go on', async () => {
    const cluster = await startRedisCluster({ replicas: 1 });
    const store = await openRedisStore({ url: cluster.url, prefix: freshPrefix(), commandTimeoutMs: 500 });
    const keys = Array.from({ length: 12 }, (_, index) => `session ${index}`); // so that each master has some
    for (const key of keys) await store.sessions.create(key, aRecord());
    await waitFor(() => areReplicated(cluster), { what: 'the replicas to follow' });
    const [lost] = await cluster.masters();
    await lost?.kill();
    for (const key of keys) {
      const [event] = createLogWriter(store, key).make({ stream: 1, text: key });
      if (event === undefined) throw new Error('unreachable');
      const outcome = await untilAnswered(() => store.log.append(key, epoch, 0, [event]));
      expect(['stored', 'already']).toContain(outcome.outcome);
    }
    await store.close();
  }, 90_000);
});

async function areReplicated(cluster: RedisCluster): Promise<boolean> {
  const counts = await Promise.all((await cluster.masters()).map((master) => master.cli('WAIT', '1', '1000')));
  return counts.every((count) => count === '1');
}

/** Moves the slot of the only session of a namespace, keys and all, as resharding does. */
async function moveSlotOf({ nodes }: RedisCluster, prefix: string): Promise<void> {
  for (const [index, source] of nodes.entries()) {
    const [key] = (await source.cli('KEYS', `${prefix}:session:*`)).split('\n');
    if (!key) continue;
    const target = nodes[(index + 1) % nodes.length];
    if (target === undefined) throw new Error('unreachable');
    const slot = await source.cli('CLUSTER', 'KEYSLOT', key);
    const [sourceId, targetId] = [await source.cli('CLUSTER', 'MYID'), await target.cli('CLUSTER', 'MYID')];
    await target.cli('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId);
    await source.cli('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId);
    // The store writes meanwhile, so that there may be keys again behind the first look.
    for (;;) {
      const keys = (await source.cli('CLUSTER', 'GETKEYSINSLOT', slot, '100')).split('\n').filter(Boolean);
      if (keys.length === 0) break;
      await source.cli('MIGRATE', '127.0.0.1', `${target.port}`, '', '0', '5000', 'KEYS', ...keys);
    }
    for (const node of [target, source]) await node.cli('CLUSTER', 'SETSLOT', slot, 'NODE', targetId);
    return;
  }
  throw new Error('no node has the session');
}
