import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it, vi } from 'vitest';

/** A disk that fails when the test says so, and what was written to it. */
const disk = vi.hoisted(() => ({
  /** How many of the next syncs, and of the next openings, fail. */
  failingSyncs: 0,
  failingOpenings: 0,
  isFull: false,
  /** The keys of each write, and whether it was brought to the disk. */
  writes: [] as { readonly keys: readonly string[]; readonly isSync: boolean }[],
}));

vi.mock('classic-level', async (original) => {
  const { ClassicLevel } = await original<typeof import('classic-level')>();
  const failure = (text: string): Error =>
    Object.assign(new Error(`IO error: 000005.log: ${text}`), { code: 'LEVEL_IO_ERROR' });
  type Operations = readonly { readonly type: string; readonly key: string }[];
  class Disk extends ClassicLevel<string, Buffer> {
    override open(...of: []): Promise<void> {
      if (disk.failingOpenings === 0) return super.open(...of);
      disk.failingOpenings -= 1;
      return Promise.reject(failure('Input/output error'));
    }

    override batch(...of: never[]): never {
      const [operations, { sync }] = of as unknown as [Operations, { sync: boolean }];
      return this.#write(operations, sync, () => (super.batch as (...all: never[]) => Promise<void>)(...of)) as never;
    }

    async #write(operations: Operations, isSync: boolean, write: () => Promise<void>): Promise<void> {
      if (disk.isFull) throw failure('No space left on device');
      if (isSync && disk.failingSyncs > 0) {
        disk.failingSyncs -= 1;
        throw failure('Input/output error');
      }
      await write();
      disk.writes.push({ keys: operations.map(({ key }) => key), isSync });
    }
  }
  return { ClassicLevel: Disk };
});

const { aRecord, createLogWriter } = await import('../../contract/log-writer.ts');
const { textsOf } = await import('../../contract/store-fixture.ts');
const { waitFor } = await import('../../support/wait-for.ts');
const { freshDirectory, openStore } = await import('./store-directories.ts');

beforeEach(() => Object.assign(disk, { failingSyncs: 0, failingOpenings: 0, isFull: false, writes: [] }));

const isSynced = (): boolean => disk.writes.at(-1)?.isSync === true;

describe('[P5] what was written is on the disk', () => {
  it('soon after its write', async () => {
    const store = await openStore(freshDirectory(), { syncMs: 20 });
    await store.sessions.create('a', aRecord());
    expect(isSynced()).toBe(false);
    await waitFor(isSynced, { what: 'the first sync' });
    await store.sessions.create('b', aRecord());
    expect(isSynced()).toBe(false);
    await waitFor(isSynced, { what: 'the second sync' });
  });

  it('when the store is closed', async () => {
    const store = await openStore(freshDirectory());
    await store.sessions.create('a', aRecord());
    expect(isSynced()).toBe(false);
    await store.close();
    expect(isSynced()).toBe(true);
  });

  it('before it is reported, if the time is 0', async () => {
    const store = await openStore(freshDirectory(), { syncMs: 0 });
    await store.sessions.create('a', aRecord());
    expect(isSynced()).toBe(true);
  });
});

it('[P5] what a disk did not take is written again, all of it, also if the files cannot be opened for a while', async () => {
  const events: string[] = [];
  const directory = freshDirectory();
  const store = await openStore(directory, { syncMs: 20, emit: ({ type }) => events.push(type) });
  for (let n = 0; n < 20; n += 1) {
    await store.sessions.create(`s${n}`, aRecord());
    await createLogWriter(store, `s${n}`).append({ stream: 1, text: `${n}` });
  }
  await store.values.set('owner', 'a', Buffer.from('b'), 60_000);
  await store.sessions.create('ended', aRecord());
  await store.sessions.end('ended');
  await waitFor(isSynced, { what: 'the first sync' });
  Object.assign(disk, { failingSyncs: 1, failingOpenings: 2, writes: [] });
  await store.sessions.create('last', aRecord());
  await waitFor(() => events.includes('store-failed'), { what: 'the failed sync' });
  await expect(store.sessions.create('refused', aRecord())).rejects.toThrow('the store is refusing requests');
  expect(store.healthyForMs()).toBe(0);
  await waitFor(() => events.includes('store-joined'), { what: 'the end of the failure' });
  await waitFor(isSynced, { what: 'the sync of everything' });
  const written = new Set(disk.writes.flatMap(({ keys }) => keys.filter((key) => /^[cv]\//.test(key))));
  expect(written.size).toBeGreaterThanOrEqual(20 + 1 + 1 + 1);
  expect(events).toEqual(['store-failed', 'store-joined']);
  await store.close();
  const next = await openStore(directory);
  expect(next.found).toMatchObject({ sessions: 21, damaged: 0 });
  for (let n = 0; n < 20; n += 1) expect(textsOf(await next.log.read(`s${n}`, 1, undefined, 10))).toEqual([`${n}`]);
  await expect(next.sessions.create('ended', aRecord())).rejects.toThrow();
});

it('[P5] a full disk gets what waits as soon as it has room, and new changes are refused until then', async () => {
  const directory = freshDirectory();
  const store = await openStore(directory);
  await store.sessions.create('s', aRecord());
  const writer = createLogWriter(store, 's');
  const batch = writer.make({ stream: 1, text: 'a' });
  disk.isFull = true;
  const { epoch } = aRecord();
  await expect(store.log.append('s', epoch, 0, batch)).rejects.toMatchObject({ reason: 'full' });
  await delay(600); // several repetitions
  await expect(store.sessions.create('t', aRecord())).rejects.toMatchObject({ reason: 'full' });
  disk.isFull = false;
  await waitFor(() => store.healthyForMs() > 0, { what: 'the end of the failure' });
  expect(await store.log.append('s', epoch, 0, batch)).toEqual({ outcome: 'already' });
  await store.close();
  const next = await openStore(directory);
  expect(textsOf(await next.log.read('s', 1, undefined, 10))).toEqual(['a']);
});
