// src/features/files: the memory store with files, from which the next process continues.

import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FilesOptions, StoreInFiles } from '../../app/features/stores.ts';
import type { Instances, LeaseRenewal } from '../../core/store/instances.ts';
import { copyRecord, type MemorySession } from '../../core/store/memory/memory-sessions.ts';
import { createMemoryTables, type MemoryTables, sweepEveryMs } from '../../core/store/memory/memory-tables.ts';
import { detach } from '../../core/util/boundary.ts';
import type { Change, RecordChange } from './change.ts';
import { isDamage, StoreDirectoryError } from './disk-errors.ts';
import { createDurableStore } from './durable-store.ts';
import { Engine, type EngineOptions } from './engine.ts';
import { isSafeToRead } from './repair-files.ts';
import { makeStoreDirectory, openingError } from './store-directory.ts';
import {
  changePrefix,
  decodeChange,
  expiryPrefix,
  parseChangeKey,
  StoredChanges,
  valueKey,
  valuePrefix,
} from './stored-changes.ts';

/** Options of `openFileStore`. */
export interface FileStoreOptions extends FilesOptions {
  /** Milliseconds of a clock that never jumps; the monotonic clock by default. */
  readonly now?: () => number;
  /** Milliseconds of the system clock. It tells how long no process used the directory. */
  readonly systemNow?: () => number;
}

/** The store, as its tests see it. */
export interface FileStore extends StoreInFiles {
  /** Removes from the disk what is not valid any more: contents of ended sessions, and evicted events. Never rejects. */
  tidy(): Promise<void>;
}

/** Contents that are not valid any more leave the disk after about this time, even if little is written. */
const tidyMs = 3_600_000;

/**
 * Opens the store in a directory and reads what an earlier process left there. Rejects with `StoreDirectoryError` if the
 * directory cannot be used.
 *
 * Durability: a change that was reported as done is in the files, so the end of this process loses nothing. A loss of
 * power loses at most the changes of the last `syncMs`.
 */
export async function openFileStore(options: FileStoreOptions): Promise<FileStore> {
  const { directory, limits } = options;
  const files = makeStoreDirectory(directory);
  const { tables, engine, stored, found } = await openMarked(options, files).catch((cause: unknown) => {
    throw openingError(directory, cause);
  });
  const { sessions } = tables;

  const sweep = setInterval(() => {
    tables.sweep();
    for (const key of stored.keys)
      if (sessions.get(key) === undefined && sessions.tombstone(key) === undefined) stored.remove(key);
  }, sweepEveryMs(limits)).unref();

  const tidy = async (): Promise<void> => {
    for (const key of [...stored.keys]) {
      if (engine.isFailing) return;
      stored.renewWhole(key);
      // One session at a time: the changes of clients do not wait behind all sessions, and few copies are in memory.
      await engine.settled().catch(() => undefined);
    }
    await engine.compact().catch(() => undefined); // a failed write is reported, and repeated
  };
  const tidying = setInterval(() => detach('store', tidy()), tidyMs).unref();
  let closing: Promise<void> | undefined;

  const close = async (): Promise<void> => {
    clearInterval(sweep);
    clearInterval(tidying);
    await engine.close();
  };

  return {
    ...createDurableStore(tables, engine, stored),
    instances: createSoleInstance(),
    found,
    sessionCount: () => sessions.count,
    tidy,
    healthyForMs: () => (engine.isFailing ? 0 : Number.POSITIVE_INFINITY),
    onRecovered: () => undefined, // an outage of the disk loses nothing, so nobody has to write again
    close() {
      closing ??= close();
      return closing;
    },
  };
}

/**
 * This process is the only instance, since the lock of the directory proves that all others have ended. So its lease never
 * lapses, and nobody asks for its address.
 */
function createSoleInstance(): Instances {
  let own: string | undefined;
  const renew = async (name: string): Promise<LeaseRenewal> => {
    const forEver = { dataAgeMs: Number.POSITIVE_INFINITY, leaseEndsMs: Number.POSITIVE_INFINITY };
    return { held: name === own, storeGeneration: 'files', ...forEver };
  };
  return {
    join(name) {
      own = name;
      return renew(name);
    },
    renew,
    async leave() {
      own = undefined;
    },
    areAlive: async (names) => names.map((name) => name === own),
    declareDead: async (name) => name !== own,
    publishAddress: async () => undefined,
    addressOf: async () => undefined,
    addresses: async () => new Map(),
  };
}

/** The name of a file that exists while a process reads the others for the first time. */
export const readingMark = 'READING';

/**
 * Some damage ends the process that reads it. If the last process did not get through the files, another one has to,
 * before this one reads them.
 */
async function openMarked(options: FileStoreOptions, files: string) {
  const mark = join(files, readingMark);
  const mustRepair = existsSync(mark) && !(await isSafeToRead(files));
  writeFileSync(mark, '', { mode: 0o600 });
  try {
    return await openTables(options, files, mustRepair).catch((cause: unknown) => {
      // Some damage is seen only when the files are read.
      if (mustRepair || !isDamage(cause)) throw cause;
      return openTables(options, files, true);
    });
  } finally {
    rmSync(mark, { force: true });
  }
}

/** Opens the files, and makes the tables that they describe. Rejects if that is not possible. */
async function openTables(options: FileStoreOptions, files: string, mustRepair: boolean) {
  const { directory, syncMs, emit } = options;
  const clock = new StoreClock(options.now ?? (() => performance.now()));
  const { now } = clock;
  let isLoaded = false;
  const tables = createMemoryTables(
    {
      ...options.limits,
      // The events that an earlier process evicted were counted by that process.
      evicted: { add: (count) => isLoaded && options.limits.evicted?.add(count) },
      onValueRemoved: (kind, name) => engine.write([{ type: 'del', key: valueKey(kind, name) }]),
    },
    now,
  );
  const { sessions, values } = tables;
  const writeAll = (): void => {
    for (const key of [...stored.keys]) stored.renewWhole(key, true);
    for (const [of, name, value, ttlMs] of values.all()) stored.add({ kind: 'value', of, name, value, ttlMs });
  };
  const engineOptions: EngineOptions = {
    directory: files,
    syncMs,
    emit,
    onUnsynced: writeAll,
  };
  const bytes = sizeOf(files); // before the engine merges files
  const { engine, isRepaired } = await Engine.open(engineOptions, mustRepair);
  const stored = new StoredChanges({ engine, sessions, now });
  try {
    await requireFormat(engine, directory);
    const { damaged, incomplete } = await load(engine, tables, stored, clock);
    isLoaded = true;
    clock.start((options.systemNow ?? Date.now)());
    for (const key of incomplete) stored.renewWhole(key, true); // so that the damage is reported once
    const found: StoreInFiles['found'] = { sessions: [...sessions.keys()].length, bytes, damaged, isRepaired };
    return { tables, engine, stored, found };
  } catch (cause) {
    await engine.close();
    throw cause;
  }
}

/**
 * Applies all stored changes, each session's at their times.
 * @returns how many were damaged, and the sessions that miss a change
 */
async function load(engine: Engine, tables: MemoryTables, stored: StoredChanges, clock: StoreClock) {
  const { sessions } = tables;
  const loaded = new Map<string, MemorySession>();
  const incomplete = new Set<string>();
  let damaged = 0;
  let previous = { digest: '', slot: -1 };
  const drop = (key: string): void => {
    damaged += 1;
    engine.write([{ type: 'del', key }]);
  };
  for await (const [key, value] of engine.entries(changePrefix)) {
    const { digest, slot } = parseChangeKey(key);
    const timed = decodeChange(key, value);
    if (timed === undefined) {
      drop(key);
      continue;
    }
    const { atMs, change } = timed;
    if (change.kind === 'value' || !stored.noteStored(digest, slot, timed, value.length)) continue;
    if (slot > 0 && (digest !== previous.digest || slot !== previous.slot + 1)) incomplete.add(change.key);
    previous = { digest, slot };
    clock.replayAt(atMs);
    // The time of a session that was in use was set again and again.
    const known = loaded.get(digest);
    if (known !== undefined) known.expiresAtMs = Number.POSITIVE_INFINITY;
    applyChange(tables, change);
    const session = sessions.get(change.key);
    if (session !== undefined) loaded.set(digest, session);
  }
  for await (const [key, value] of engine.entries(expiryPrefix)) {
    const session = loaded.get(key.slice(expiryPrefix.length));
    // A damaged time is no number, or a wrong time of one session.
    const expiresAtMs = value.length === 8 ? value.readDoubleLE() : Number.NaN;
    if (session !== undefined && expiresAtMs > session.expiresAtMs) session.expiresAtMs = expiresAtMs;
  }
  for await (const [key, value] of engine.entries(valuePrefix)) {
    const timed = decodeChange(key, value);
    if (timed === undefined) {
      drop(key);
      continue;
    }
    clock.replayAt(timed.atMs);
    applyChange(tables, timed.change);
  }
  for (const key of stored.keys) stored.noteTables(key);
  return { damaged, incomplete };
}

/** The format that this version reads and writes. */
const format = 4;
const formatKey = 'format';

/** Throws `StoreDirectoryError` for files of another version. */
async function requireFormat(engine: Engine, directory: string): Promise<void> {
  const found = await engine.get(formatKey);
  if (found === undefined) return engine.write([{ type: 'put', key: formatKey, value: Buffer.from(`${format}`) }]);
  if (Number(found) === format) return;
  throw new StoreDirectoryError(
    `${directory} was written by another version of mcp-gangway (format ${found}; this version reads ${format}). ` +
      'Use that version, name another directory (replay.store), or delete the directory with its sessions.',
  );
}

/** The bytes of the files in a directory. Another process that uses it may remove files meanwhile. */
const sizeOf = (directory: string): number =>
  readdirSync(directory)
    .map((name) => statSync(join(directory, name), { throwIfNoEntry: false }))
    .reduce((sum, found) => sum + (found?.size ?? 0), 0);

/**
 * The time of the store in milliseconds. It begins with the system clock and then follows the monotonic clock. A later
 * process continues it, so it never goes back, even if the system clock was set back.
 */
class StoreClock {
  readonly #monotonic: () => number;
  #offsetMs: number | undefined;
  #replayedMs = 0;
  #newestMs = 0;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  readonly now = (): number => (this.#offsetMs === undefined ? this.#replayedMs : this.#monotonic() + this.#offsetMs);

  /** Sets the time of the stored changes that are applied next. */
  replayAt(atMs: number): void {
    this.#replayedMs = atMs;
    this.#newestMs = Math.max(this.#newestMs, atMs);
  }

  start(systemMs: number): void {
    this.#offsetMs = Math.max(this.#newestMs, systemMs) - this.#monotonic();
  }
}

/**
 * Applies a change that was stored before. A change of an unknown session has no effect: the session follows as a
 * whole, or it has ended.
 */
function applyChange(tables: MemoryTables, change: Change): void {
  const { sessions } = tables;
  switch (change.kind) {
    case 'session':
      return tables.restore(change.key, change.session);
    case 'append':
      return tables.replay(change.key, change.epoch, change.events);
    case 'record':
      return changeRecord(tables, change.key, change);
    case 'end':
      return sessions.bury(change.key, change.tombstone);
    case 'value':
      return tables.values.set(change.of, change.name, change.value, change.ttlMs);
  }
}

function changeRecord({ sessions }: MemoryTables, key: string, { record, takeovers, term }: RecordChange): void {
  const session = sessions.get(key);
  if (session === undefined) return;
  const { epoch } = session.record;
  session.record = copyRecord({ ...session.record, ...record });
  if (session.record.epoch !== epoch) session.log.beginEpoch(session.record.epoch);
  session.takeovers = takeovers;
  session.term = term;
  sessions.renew([key]);
}
