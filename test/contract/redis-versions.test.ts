import { describe, expect, it } from 'vitest';
import { OtherRecordVersion } from '../../src/core/store/session-records.ts';
import { recordVersions } from '../../src/features/redis/codec.ts';
import { startRedis } from '../support/redis-server.ts';
import { aRecord, epoch } from './log-writer.ts';
import { freshPrefix, openRedisStore, startedForAll } from './redis-fixture.ts';

/** This build, the one of the next release with a change, and the one after it. */
const today = recordVersions;
const next = { ...today, newest: today.newest + 1 };
const afterNext = { ...next, written: next.newest };

describe('[C-10] session records of several versions in one Redis', () => {
  const redis = startedForAll(() => startRedis());

  /** Stores of several builds that share a namespace. */
  async function openStores<T extends Record<string, typeof today>>(builds: T) {
    const prefix = freshPrefix();
    const open = (versions: typeof today) => openRedisStore({ url: redis().url, prefix, versions });
    const opened = await Promise.all(
      Object.entries(builds).map(async ([name, versions]) => [name, await open(versions)] as const),
    );
    const versionIn = async (): Promise<number> => {
      const key = (await redis().cli('KEYS', `${prefix}:session:*:record`)).trim();
      return Number(await redis().cli('HGET', key, 'version'));
    };
    return { stores: Object.fromEntries(opened) as Record<keyof T, (typeof opened)[0][1]>, versionIn };
  }

  it('[P9] lose nothing in an upgrade to the next release and to the one after it, and in a roll-back of one release', async () => {
    const { stores, versionIn } = await openStores({ today, next, afterNext });
    await stores.today.sessions.create('s', aRecord());
    const path = ['next', 'afterNext', 'next', 'today'] as const;
    let from = { owner: 'instance-1', epoch };
    for (const build of path) {
      expect((await stores[build].sessions.find('s'))?.owner).toBe(from.owner);
      const taken = await stores[build].sessions.takeOver('s', from, build);
      if (taken.outcome !== 'taken') throw new Error(taken.outcome);
      expect(taken.record).toEqual(aRecord({ owner: build, epoch: taken.record.epoch }));
      from = taken.record;
      // What the new owner amends has its version, and so has the rest of the record.
      expect(await versionIn()).toBe(build === 'afterNext' ? afterNext.written : today.written);
      await stores[build].sessions.amend('s', from.epoch, { clientState: aRecord().clientState });
      await stores[build].sessions.release('s', from.epoch);
      from = { owner: '', epoch: from.epoch };
    }
    for (const store of Object.values(stores)) await store.close();
  });

  it('are refused with advice if this build cannot read them, and are not taken over', async () => {
    const { stores } = await openStores({ today, afterNext });
    await stores.afterNext.sessions.create('s', aRecord());
    const refused = await stores.today.sessions.find('s').catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(OtherRecordVersion);
    expect((refused as Error).message).toMatch(/has version 2, and this gateway reads 1\. Run gateways of one release/);
    expect(await stores.today.sessions.takeOver('s', { owner: 'instance-1', epoch }, 'b')).toEqual({
      outcome: 'moved',
    });
    expect(await stores.afterNext.sessions.find('s')).toEqual(aRecord());
    for (const store of Object.values(stores)) await store.close();
  });

  it('are refused without a version, as before there were versions', async () => {
    const prefix = freshPrefix();
    const store = await openRedisStore({ url: redis().url, prefix });
    await store.sessions.create('s', aRecord());
    const key = (await redis().cli('KEYS', `${prefix}:session:*:record`)).trim();
    await redis().cli('HDEL', key, 'version');
    await expect(store.sessions.find('s')).rejects.toThrow('has version none');
    await store.close();
  });
});
