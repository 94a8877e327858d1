// src/store/memory/journal: the memory store with a journal in files, from which the next process continues.

import { detach } from '../../../util/boundary.ts';
import type { Emit } from '../../../util/telemetry/emit.ts';
import type { ClusterStore } from '../../store.ts';
import type { StoreEvent } from '../../store-events.ts';
import { createMemoryInstances } from '../memory-instances.ts';
import { createMemoryTables, type MemoryLimits, type MemoryTables, sweepEveryMs } from '../memory-tables.ts';
import { applyChange } from './apply-change.ts';
import type { Change } from './change.ts';
import { Compaction } from './compaction.ts';
import { formatFrame } from './files/frames.ts';
import { Journal } from './files/journal.ts';
import { readSegment, type SegmentDamage } from './files/read-segment.ts';
import { listSegments, type SegmentFile } from './files/segment-files.ts';
import { openStoreDirectory } from './files/store-directory.ts';
import { formatChange } from './format-change.ts';
import { createJournaledStore } from './journaled-store.ts';
import { parseChange } from './parse-change.ts';

/** Options of `openFileStore`. */
export interface FileStoreOptions {
  readonly directory: string;
  readonly limits: MemoryLimits;
  /** The longest time before written data are on the disk itself; 0 for before each change is reported as stored. */
  readonly syncMs: number;
  /** The duration of a lease after a renewal. No other instance shares the store, so a lease may be long. */
  readonly leaseMs: number;
  /** How many bytes a mailbox may have unread (P8). */
  readonly mailboxMaxBytes: number;
  readonly emit: Emit<StoreEvent>;
  /** Milliseconds of a clock that never jumps; the monotonic clock by default. */
  readonly now?: () => number;
  /** Milliseconds of the system clock. It tells how long no process used the directory. */
  readonly systemNow?: () => number;
  /** The size that the files may have before they are written anew for the first time; 16 MiB by default. */
  readonly compactMinBytes?: number;
  /** How often the store looks whether its files should be written anew; 10 s by default. */
  readonly compactionCheckMs?: number;
}

/** What was found in the directory. */
export interface FoundState extends SegmentDamage {
  readonly sessions: number;
  readonly bytes: number;
  /** True if users other than the owner may enter the directory. */
  readonly isOpenToOthers: boolean;
}

/** A store in the memory of this process, with a journal from which the next process continues. */
export interface FileStore extends ClusterStore {
  readonly found: FoundState;
  /** Writes all that is valid to a new file, and removes the older files. */
  compact(): Promise<void>;
}

/**
 * Opens the store in a directory and reads what an earlier process left there. Throws `StoreDirectoryError` if the
 * directory cannot be used.
 *
 * Durability: a change that was reported as done is in the file, so the end of this process loses nothing. A loss of
 * power loses at most the changes of the last `syncMs`.
 */
export function openFileStore(options: FileStoreOptions): FileStore {
  const { syncMs, leaseMs, mailboxMaxBytes, emit, compactionCheckMs = 10_000 } = options;
  const directory = openStoreDirectory(options.directory);
  const clock = new StoreClock(options.now ?? (() => performance.now()));
  const { now } = clock;
  const { evicted } = options.limits;
  let isReplayed = false;
  // The events that an earlier process evicted were counted by that process.
  const limits: MemoryLimits = { ...options.limits, evicted: { add: (count) => isReplayed && evicted?.add(count) } };
  const tables = createMemoryTables(limits, now);
  let journal: Journal;
  let segments: readonly SegmentFile[];
  let damage: SegmentDamage;
  try {
    segments = listSegments(directory.path);
    damage = replay(segments, tables, clock);
    isReplayed = true;
    clock.start((options.systemNow ?? Date.now)());
    journal = new Journal({
      directory: directory.path,
      segments,
      syncMs,
      onFailed: (cause) => emit({ type: 'store-failed', cause }),
      onWorking: () => emit({ type: 'store-joined' }),
      onUnsynced: () => compaction.repair(),
    });
  } catch (cause) {
    directory.close();
    throw cause;
  }
  const append = (change: Change): void => journal.append(formatFrame(now(), formatChange(change)));
  const instances = createMemoryInstances({ leaseMs, mailboxMaxBytes, now, createdMs: 0 });
  const compaction: Compaction = new Compaction({
    journal,
    tables,
    append,
    minBytes: options.compactMinBytes,
    onFailed: emit,
  });
  const found: FoundState = {
    ...damage,
    sessions: [...tables.sessions.keys()].length,
    bytes: segments.reduce((sum, { bytes }) => sum + bytes, 0),
    isOpenToOthers: directory.isOpenToOthers,
  };

  const sweep = setInterval(() => {
    tables.sweep();
    instances.sweep();
  }, sweepEveryMs(limits)).unref();
  const compactionCheck = setInterval(() => detach('store', compaction.runIfDue()), compactionCheckMs).unref();
  let closing: Promise<void> | undefined;

  const close = async (): Promise<void> => {
    clearInterval(sweep);
    clearInterval(compactionCheck);
    instances.clear();
    await compaction.close();
    await journal.close();
    tables.clear();
    directory.close();
  };

  return {
    ...createJournaledStore(tables, journal, append),
    instances,
    found,
    compact: () => compaction.run(),
    healthyForMs: () => (journal.isFailing ? 0 : Number.POSITIVE_INFINITY),
    onRecovered: () => undefined, // an outage of the disk loses nothing, so nobody has to write again
    close() {
      closing ??= close();
      return closing;
    },
  };
}

/** Applies all stored changes, each at its time. */
function replay(segments: readonly SegmentFile[], tables: MemoryTables, clock: StoreClock): SegmentDamage {
  let tornBytes = 0;
  let damagedBytes = 0;
  for (const { path } of segments) {
    const damage = readSegment(path, ({ atMs, content }) => {
      clock.replayAt(atMs);
      const change = parseChange(content);
      if (change !== undefined) applyChange(tables, change);
    });
    tornBytes += damage.tornBytes;
    damagedBytes += damage.damagedBytes;
  }
  return { tornBytes, damagedBytes };
}

/**
 * The time of the store in milliseconds. It begins with the system clock and then follows the monotonic clock. A later
 * process continues it, so it never goes back, even if the system clock was set back.
 */
class StoreClock {
  readonly #monotonic: () => number;
  #offsetMs: number | undefined;
  #replayedMs = 0;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  readonly now = (): number => (this.#offsetMs === undefined ? this.#replayedMs : this.#monotonic() + this.#offsetMs);

  /** Sets the time of the stored changes that are applied next. */
  replayAt(atMs: number): void {
    this.#replayedMs = Math.max(this.#replayedMs, atMs);
  }

  start(systemMs: number): void {
    this.#offsetMs = Math.max(this.#replayedMs, systemMs) - this.#monotonic();
  }
}
