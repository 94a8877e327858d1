import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { ClusterStore } from '../../src/core/store/store.ts';
import { type FileStore, openFileStore } from '../../src/features/files/file-store.ts';
import { storeContract } from './store-contract.ts';
import { createTimedStore, type StoreLimits } from './store-fixture.ts';

const root = mkdtempSync(join(tmpdir(), 'gangway-contract-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let made = 0;
const startedMs = Date.now();

function open(limits: Omit<StoreLimits, 'leaseMs'>, directory: string, now: () => number): Promise<FileStore> {
  const times = { now, systemNow: () => startedMs + now() };
  return openFileStore({ directory, limits, syncMs: 1_000, emit: () => undefined, ...times });
}

const freshDirectory = (): string => join(root, `${++made}`);

storeContract('file', (limits) => createTimedStore((now) => open(limits, freshDirectory(), now)), { isShared: false });

const wideLimits = { maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: 3_600_000, recordTtlMs: 3_600_000 };

describe('the only instance of a store in files', () => {
  it('[P6] holds its lease for ever, and every other one is dead, as the lock of the directory proves', async () => {
    const directory = freshDirectory();
    const before = await open(wideLimits, directory, () => 0);
    expect(await before.instances.join('before')).toMatchObject({ held: true });
    expect(await before.instances.declareDead('before')).toBe(false);
    await before.close();
    const { instances, close } = await open(wideLimits, directory, () => 0);
    expect(await instances.join('first')).toMatchObject({ held: true });
    expect(await instances.renew('first')).toMatchObject({ held: true, dataAgeMs: Number.POSITIVE_INFINITY });
    expect(await instances.areAlive(['before', 'first'])).toEqual([false, true]);
    expect(await instances.declareDead('before')).toBe(true);
    expect(await instances.join('second')).toMatchObject({ held: true });
    expect(await instances.renew('first')).toMatchObject({ held: false });
    await instances.leave('second');
    expect(await instances.areAlive(['second'])).toEqual([false]);
    await close();
  });
});

/**
 * The same suite, but each use of the second view of the data reopens the store: what it sees is what the files have.
 */
storeContract('file, reopened', (limits) => createTimedStore((now) => openReopened(limits, now)), {
  modelRuns: 15,
  isShared: false,
});

/** A store whose every change is seen only by the next opening. */
async function openReopened(limits: StoreLimits, now: () => number): Promise<ClusterStore> {
  const directory = freshDirectory();
  let current = await open(limits, directory, now);
  let turn: Promise<unknown> = Promise.resolve();
  let openings = 0;
  let hasChanged = false;

  /** Runs a method after reopening the store, one after the other. Reads in a row find the same files. */
  const reopened = (run: (store: FileStore) => Promise<unknown>, isRead: boolean): Promise<unknown> => {
    const result = turn.then(async () => {
      if (hasChanged || !isRead) {
        openings += 1;
        if (openings % 3 === 0) await current.tidy();
        await current.close();
        current = await open(limits, directory, now);
      }
      hasChanged = !isRead;
      return run(current);
    });
    turn = result.catch(() => undefined);
    return result;
  };
  type Room = Record<string, (...args: unknown[]) => Promise<unknown>>;
  const viewOf = (name: 'log' | 'sessions' | 'values'): never =>
    new Proxy({} as Room, {
      get:
        (_, method: string) =>
        (...args: unknown[]) =>
          reopened(
            (store) => ((store[name] as unknown as Room)[method] as Room[string])(...args),
            ['read', 'find', 'get'].includes(method),
          ),
    }) as never;
  const unchanged = await open(limits, freshDirectory(), now);
  return {
    ...unchanged,
    log: viewOf('log'),
    sessions: viewOf('sessions'),
    values: viewOf('values'),
    async close() {
      await turn;
      await Promise.all([current.close(), unchanged.close()]);
    },
  };
}
