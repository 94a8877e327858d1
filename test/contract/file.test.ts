import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { ClusterStore } from '../../src/core/store/store.ts';
import { type FileStore, openFileStore } from '../../src/features/files/file-store.ts';
import { storeContract } from './store-contract.ts';
import type { StoreLimits, StoreUnderTest } from './store-fixture.ts';

const root = mkdtempSync(join(tmpdir(), 'gangway-contract-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let made = 0;
const startedMs = Date.now();

function open({ leaseMs, ...limits }: StoreLimits, directory: string, now: () => number): Promise<FileStore> {
  const times = { now, systemNow: () => startedMs + now() };
  return openFileStore({ directory, limits, syncMs: 1_000, leaseMs, emit: () => undefined, ...times });
}

const freshDirectory = (): string => join(root, `${++made}`);

storeContract('file', async (limits): Promise<StoreUnderTest> => {
  let nowMs = 0;
  const store = await open(limits, freshDirectory(), () => nowMs);
  return {
    store,
    other: store,
    isRealTime: false,
    advance: (ms) => {
      nowMs += ms;
    },
  };
});

/**
 * The same suite, but each use of the second view of the data reopens the store: what it sees is what the files have.
 */
storeContract(
  'file, reopened',
  async (limits): Promise<StoreUnderTest> => {
    const directory = freshDirectory();
    let nowMs = 0;
    const now = (): number => nowMs;
    let current = await open(limits, directory, now);
    const { instances } = current; // leases live as long as a process
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
    const store: ClusterStore = {
      ...unchanged,
      instances,
      log: viewOf('log'),
      sessions: viewOf('sessions'),
      values: viewOf('values'),
      async close() {
        await turn;
        await Promise.all([current.close(), unchanged.close()]);
      },
    };
    return {
      store,
      other: store,
      isRealTime: false,
      advance: (ms) => {
        nowMs += ms;
      },
    };
  },
  { modelRuns: 15 },
);
