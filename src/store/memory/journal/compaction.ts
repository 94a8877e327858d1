import { detach } from '../../../util/boundary.ts';
import type { Emit } from '../../../util/telemetry/emit.ts';
import { backoff } from '../../../util/timing/backoff.ts';
import type { StoreEvent } from '../../store-events.ts';
import type { MemoryTables } from '../memory-tables.ts';
import { allChanges } from './apply-change.ts';
import type { Change } from './change.ts';
import type { Journal } from './files/journal.ts';

/** Options of `Compaction`. */
export interface CompactionOptions {
  readonly journal: Journal;
  readonly tables: MemoryTables;
  append(change: Change): void;
  /** The size of all files below which they are not written anew because of their size; 16 MiB by default. */
  readonly minBytes?: number | undefined;
  readonly onFailed: Emit<StoreEvent>;
}

const defaultMinBytes = 16 * 1024 * 1024;

/** The files are written anew when they are this many times as large as after the last time. */
const growth = 2;

/** Each start begins a file, so a gateway that is restarted often would collect many small ones. */
const maxFiles = 16;

/** The pause before a repair. A disk that fails each time must not be filled with files. */
const repairPauseAfter = backoff({ firstMs: 100, maxMs: 60_000 });

/** Evicted contents leave the disk after about this time, even if little is written. */
const maxAgeMs = 3_600_000;

/**
 * Bounds the files (P8): writes all that is valid to a new file while the store goes on, and then removes the older
 * files. The changes of this time go to the same new file, between the others. The older files are removed only when
 * the new one is complete and on the disk, so the end of the process at any moment loses nothing.
 */
export class Compaction {
  readonly #options: CompactionOptions;
  readonly #minBytes: number;
  /** The bytes of all files after the last time. */
  #baseBytes = 0;
  #lastAt = performance.now();
  #bytesAtLast: number;
  #running: Promise<void> | undefined;
  /** True if the disk may have lost a part of what was written. */
  #isDamaged = false;
  /** The repairs in a row that the disk did not take. */
  #failedRepairs = 0;
  #repairTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: CompactionOptions) {
    this.#options = options;
    this.#minBytes = options.minBytes ?? defaultMinBytes;
    this.#bytesAtLast = 0;
  }

  /** Writes the files anew if they have grown enough. Never rejects. */
  async runIfDue(): Promise<void> {
    if (this.#isDue) await this.run();
  }

  /** Writes the files anew; one run at a time. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#run()
      .catch((cause: unknown) => this.#options.onFailed({ type: 'store-failed', cause }))
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  /** The disk may have lost what was written: writes the files anew soon, also those of a run under way. */
  repair(): void {
    this.#isDamaged = true;
    if (this.#isClosed) return;
    this.#repairTimer ??= setTimeout(() => {
      this.#repairTimer = undefined;
      this.#failedRepairs += 1; // until a run succeeds
      detach('store', this.run());
    }, repairPauseAfter(this.#failedRepairs)).unref();
  }

  /** Stops a run that is under way. The older files then stay. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#repairTimer);
    await this.#running;
  }

  get #isDue(): boolean {
    const { bytes, fileCount, isFailing } = this.#options.journal;
    if (isFailing) return false;
    if (this.#isDamaged) return true;
    if (bytes > Math.max(this.#minBytes, this.#baseBytes * growth) || fileCount > maxFiles) return true;
    return performance.now() - this.#lastAt > maxAgeMs && bytes > this.#bytesAtLast;
  }

  async #run(): Promise<void> {
    const { journal } = this.#options;
    this.#lastAt = performance.now();
    this.#isDamaged = false;
    try {
      const obsoleteFiles = journal.rotate();
      await this.#writeAll();
      await journal.sync();
      if (this.#isClosed || this.#isDamaged) return; // a repair follows
      journal.removeOldest(obsoleteFiles);
    } catch (cause) {
      this.repair();
      throw cause;
    }
    this.#failedRepairs = 0;
    this.#baseBytes = journal.bytes;
    this.#bytesAtLast = journal.bytes;
  }

  /** Writes all that is valid, unless the run is closed or has to begin anew. */
  async #writeAll(): Promise<void> {
    const { journal, tables, append } = this.#options;
    for (const change of allChanges(tables)) {
      if (this.#isClosed || this.#isDamaged) return;
      append(change);
      // One session at a time: the changes of clients do not wait behind all sessions, and few copies are in memory.
      await journal.settled();
    }
    append({ kind: 'base' });
    await journal.settled();
  }
}
