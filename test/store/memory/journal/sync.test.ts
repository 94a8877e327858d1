import { rmSync as removeFile, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it, vi } from 'vitest';

/** A disk that is slow, and fails when the test says so. */
const disk = vi.hoisted(() => ({ syncMs: 0, failures: 0, isFull: false, syncs: 0, events: [] as string[] }));

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const fdatasync = (file: number, done: (error: Error | null) => void): void => {
    disk.syncs += 1;
    const id = disk.syncs;
    const error = disk.failures > 0 ? Object.assign(new Error('EIO'), { code: 'EIO' }) : null;
    if (error !== null) disk.failures -= 1;
    disk.events.push(`sync ${id} of ${file}`);
    setTimeout(() => {
      disk.events.push(`sync ${id} ${error === null ? 'done' : 'failed'}`);
      done(error);
    }, disk.syncMs);
  };
  type Write = (...args: unknown[]) => void;
  const write: Write = (file, ...rest) => {
    const callback = rest.pop() as Write;
    if (disk.isFull) {
      setTimeout(() => callback(Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })), 1);
      return;
    }
    (fs.write as unknown as Write)(file, ...rest, (...result: unknown[]) => {
      disk.events.push(`wrote to ${file}`);
      callback(...result);
    });
  };
  const rmSync: typeof fs.rmSync = (path, options) => {
    disk.events.push('removed');
    fs.rmSync(path, options);
  };
  return { ...fs, fdatasync, write, rmSync };
});

const { aRecord, createLogWriter } = await import('../../../contract/log-writer.ts');
const { waitFor } = await import('../../../support/wait-for.ts');
const { filesOf, freshDirectory, openStore } = await import('./store-directories.ts');

beforeEach(() => Object.assign(disk, { syncMs: 0, failures: 0, isFull: false, events: [] }));

const wasRemoved = (): boolean => disk.events.includes('removed');
const countWrites = (from = 0, to = disk.events.length): number =>
  disk.events.slice(from, to).filter((event) => event.startsWith('wrote')).length;

/** True if a sync began after the last write, and has ended. */
function isSynced(until = disk.events.length): boolean {
  const events = disk.events.slice(0, until);
  const lastWrite = events.findLastIndex((event) => event.startsWith('wrote'));
  const later = events.slice(lastWrite + 1).filter((event) => / of /.test(event));
  return later.some((event) => events.includes(`${event.split(' of')[0]} done`));
}

describe('[P5] what was written is on a slow disk', () => {
  it('soon after its write, also if it was written during a sync', async () => {
    disk.syncMs = 100;
    const store = openStore(freshDirectory(), { syncMs: 20 });
    await store.sessions.create('a', aRecord());
    await waitFor(() => disk.events.some((event) => / of /.test(event)), { what: 'the first sync' });
    await store.sessions.create('b', aRecord());
    await waitFor(() => isSynced(), { what: 'the second sync' });
  });

  it('when the store is closed', async () => {
    disk.syncMs = 100;
    const store = openStore(freshDirectory(), { syncMs: 20 });
    await store.sessions.create('a', aRecord());
    await waitFor(() => disk.events.some((event) => / of /.test(event)), { what: 'the first sync' });
    await store.sessions.create('b', aRecord());
    await store.close();
    expect(isSynced()).toBe(true);
  });

  it('before the older files are removed', async () => {
    disk.syncMs = 30;
    const store = openStore(freshDirectory(), { syncMs: 1 });
    for (let n = 0; n < 100; n += 1) await store.sessions.create(`s${n}`, aRecord());
    await store.compact();
    expect(wasRemoved()).toBe(true);
    expect(isSynced(disk.events.indexOf('removed'))).toBe(true);
  });
});

describe('[P5] what a disk did not take is written again', () => {
  it('during a compaction, before the older files are removed', async () => {
    disk.syncMs = 5;
    const store = openStore(freshDirectory(), { syncMs: 5 });
    for (let n = 0; n < 200; n += 1) {
      await store.sessions.create(`s${n}`, aRecord());
      await createLogWriter(store, `s${n}`).append({ stream: 1, text: 'x' });
    }
    await waitFor(() => isSynced(), { what: 'the sync' });
    disk.events.length = 0;
    const compacted = store.compact();
    await waitFor(() => countWrites() >= 50, { what: 'a part of the compaction' });
    disk.failures = 1;
    await compacted;
    await waitFor(wasRemoved, { what: 'the removal of the older files' });
    const failedAt = disk.events.findIndex((event) => event.endsWith('failed'));
    expect(failedAt).toBeGreaterThan(0);
    expect(countWrites(failedAt, disk.events.indexOf('removed'))).toBeGreaterThanOrEqual(200);
  });

  it('at the end of a file', async () => {
    disk.syncMs = 5;
    const store = openStore(freshDirectory(), { syncMs: 50 });
    for (let n = 0; n < 20; n += 1) await store.sessions.create(`s${n}`, aRecord());
    disk.failures = 1; // the first sync of a compaction is that of the file before
    await store.compact();
    await waitFor(wasRemoved, { what: 'the removal of the older file' });
    const failedAt = disk.events.findIndex((event) => event.endsWith('failed'));
    expect(failedAt).toBeGreaterThan(0);
    expect(countWrites(failedAt, disk.events.indexOf('removed'))).toBeGreaterThanOrEqual(20);
  });
});

it('[P5] what a disk did not take is written again, also after it was full for a while', async () => {
  const directory = freshDirectory();
  const store = openStore(directory, { syncMs: 20 });
  for (let n = 0; n < 5; n += 1) await store.sessions.create(`s${n}`, aRecord());
  Object.assign(disk, { failures: 1, isFull: true });
  await waitFor(() => disk.failures === 0, { what: 'the failed sync' });
  await delay(150); // the repair begins
  disk.isFull = false;
  await waitFor(wasRemoved, { what: 'the removal of the older file' });
  expect(isSynced(disk.events.indexOf('removed'))).toBe(true);
});

it('[P8] a disk that takes nothing for a while is not filled with files', async () => {
  const directory = freshDirectory();
  const store = openStore(directory, { syncMs: 20 });
  await store.sessions.create('a', aRecord());
  disk.failures = 1_000_000;
  await delay(2_000);
  expect(filesOf(directory).length).toBeLessThan(10);
  disk.failures = 0;
  await waitFor(() => filesOf(directory).length === 1, { what: 'the removal of the older files' });
});

it('[P8] an older file that somebody has removed does not make the files grow', async () => {
  const directory = freshDirectory();
  await openStore(directory).close();
  const store = openStore(directory);
  for (let n = 0; n < 50; n += 1) await store.sessions.create(`s${n}`, aRecord());
  removeFile(filesOf(directory)[0] as string);
  const sizes: number[] = [];
  for (let n = 0; n < 3; n += 1) {
    await store.compact();
    await delay(10);
    sizes.push(filesOf(directory).reduce((sum, path) => sum + statSync(path).size, 0));
  }
  expect(sizes.at(-1)).toBeLessThanOrEqual(sizes[0] as number);
  expect(filesOf(directory)).toHaveLength(1);
});
