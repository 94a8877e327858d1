import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import type { StoreEvent } from '../../core/store/store-events.ts';
import { StoreUnavailable } from '../../core/store/store-unavailable.ts';
import { detach } from '../../core/util/boundary.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';
import { isDamage, unavailabilityOf } from './disk-errors.ts';
import { repairFiles } from './repair-files.ts';

/** Sets or removes a key of the engine. */
export type Operation =
  | { readonly type: 'put'; readonly key: string; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: string };

/** Options of `Engine`. */
export interface EngineOptions {
  /** The directory of the engine's files, which this process alone uses. */
  readonly directory: string;
  /** The longest time before written data are on the disk itself; 0 for before each change is reported as stored. */
  readonly syncMs: number;
  /** Is told of a write that failed. The engine repeats it until it succeeds, and reports only the first failure. */
  readonly emit: Emit<StoreEvent>;
  /** The disk did not take what was written, and the kernel may have dropped it. Everything has to be written again. */
  onUnsynced(): void;
}

/** Operations that are written together, and the promise of their end. */
interface Batch {
  readonly operations: Operation[];
  bytes: number;
  readonly written: Promise<void>;
  settle(cause?: unknown): void;
}

/** The pause before a failed write is repeated. */
const retryMs = 250;

/**
 * How many bytes wait for a disk that does not answer (P8). Beyond this limit, changes are refused. A single change may
 * exceed it.
 */
const maxQueuedBytes = 64 * 1024 * 1024;

/** The most bytes of one write. More would only make the next changes wait. */
const bytesPerWrite = 4 * 1024 * 1024;

/** About what a key takes, so that many removals do not wait for nothing. */
const bytesPerKey = 64;

/** The engine reads its files only at a start, so it needs hardly any memory for what it has read. */
const cacheBytes = 256 * 1024;

/** Each byte of a key is a character, so that also a damaged key, which is no UTF-8, can be removed. */
const keyEncoding = {
  name: 'latin1',
  format: 'buffer',
  encode: (key: string) => Buffer.from(key, 'latin1'),
  decode: (bytes: Buffer) => bytes.toString('latin1'),
} as const;

/** Keys before and behind all others. */
const firstKey = '!';
const lastKey = '~';

/** Written when everything else was, so that it brings everything to the disk. */
const syncKey = 'synced';

/**
 * The files of a store: a LevelDB, which keeps values by key, and writes the operations of one batch all or not at all.
 * What is queued while a write runs is written together. If a write fails, its operations stay queued, and further
 * changes are refused until it succeeds. So the files always have the changes in the order of the tables, without a gap.
 */
export class Engine {
  readonly #options: EngineOptions;
  readonly #database: ClassicLevel<string, Buffer>;
  /** Waiting batches, oldest first. The first one is being written while `#isWriting`. */
  readonly #queue: Batch[] = [];
  #queuedBytes = 0;
  #isWriting = false;
  #failure: StoreUnavailable | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #syncTimer: NodeJS.Timeout | undefined;
  #mustSync = false;
  /** True if the disk may have lost a part of what was written. */
  #isUnsynced = false;
  #isClosed = false;

  private constructor(options: EngineOptions, database: ClassicLevel<string, Buffer>) {
    this.#options = options;
    this.#database = database;
  }

  /**
   * Opens the files, and repairs them if they are damaged. Rejects if they cannot be opened; see `isInUse` and
   * `reasonTextOf`.
   * @param mustRepair repairs them first: they could be opened, but not read
   * @returns the engine, and true if the files were repaired: what could not be read is then lost
   */
  static async open(
    options: EngineOptions,
    mustRepair: boolean,
  ): Promise<{ readonly engine: Engine; readonly isRepaired: boolean }> {
    const { directory } = options;
    const isRepaired = mustRepair || hasLostItsBeginning(directory);
    if (isRepaired) await repairFiles(directory);
    const database = new ClassicLevel<string, Buffer>(directory, {
      keyEncoding,
      valueEncoding: 'buffer',
      compression: false, // it would cost more than the room that it saves
      cacheSize: cacheBytes,
    });
    const repair = async (cause: unknown): Promise<true> => {
      if (!isDamage(cause)) throw cause;
      await repairFiles(directory);
      await database.open();
      return true;
    };
    const wasDamaged = await database.open().then(() => false, repair);
    return { engine: new Engine(options, database), isRepaired: isRepaired || wasDamaged };
  }

  /** All keys that begin with a text, and their values, in order. */
  entries(prefix: string): AsyncIterable<[string, Buffer]> {
    return this.#database.iterator({ gte: prefix, lt: `${prefix}\xff` });
  }

  /** The value of a key; undefined if there is none. */
  get(key: string): Promise<Buffer | undefined> {
    return this.#database.get(key);
  }

  /** True while writes fail. */
  get isFailing(): boolean {
    return this.#failure !== undefined;
  }

  /** True if everything that was written is in the files. */
  get isSettled(): boolean {
    return this.#queue.length === 0;
  }

  /** Throws while no change is accepted. Call this before a change takes effect. */
  requireWritable(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#isClosed || this.#queuedBytes > maxQueuedBytes) throw new StoreUnavailable('unreachable');
  }

  /** Queues operations that belong together. All operations are written in the order of these calls. */
  write(operations: readonly Operation[]): void {
    let batch = this.#queue.at(-1);
    const isOpen = batch !== undefined && batch.bytes < bytesPerWrite && !(this.#isWriting && this.#queue.length === 1);
    if (batch === undefined || !isOpen) {
      batch = createBatch();
      this.#queue.push(batch);
    }
    for (const operation of operations) {
      const bytes = bytesPerKey + (operation.type === 'put' ? operation.value.length : 0);
      batch.operations.push(operation);
      batch.bytes += bytes;
      this.#queuedBytes += bytes;
    }
    this.#run();
  }

  /** Resolves when everything that was queued up to now is in the files. Rejects with `StoreUnavailable`. */
  async settled(): Promise<void> {
    await this.#queue.at(-1)?.written;
  }

  /**
   * Removes the contents of removed and replaced values from the disk. LevelDB merges files only if a newer file has
   * keys on both sides of theirs.
   */
  async compact(): Promise<void> {
    if (this.#isClosed || this.isFailing) return;
    const value = Buffer.alloc(0);
    await this.#database.compactRange(firstKey, lastKey);
    this.write([firstKey, lastKey].map((key) => ({ type: 'put', key, value })));
    await this.settled();
    await this.#database.compactRange(firstKey, lastKey);
  }

  /** Writes what is queued, and closes the files. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#syncTimer);
    if (this.#failure === undefined) {
      this.#requestSync();
      // The failure was reported, and a process that ends cannot repeat it.
      while (!this.isSettled && !this.isFailing) await this.settled().catch(() => undefined);
    }
    clearTimeout(this.#retryTimer);
    await this.#database.close();
  }

  #requestSync(): void {
    this.#syncTimer = undefined;
    this.#mustSync = true;
    this.write([{ type: 'put', key: syncKey, value: Buffer.alloc(0) }]);
  }

  #run(): void {
    if (!this.#isWriting && this.#failure === undefined) detach('store', this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    try {
      for (let batch = this.#queue[0]; batch !== undefined; batch = this.#queue[0]) {
        await this.#write(batch);
        this.#queue.shift();
        this.#queuedBytes -= batch.bytes;
        batch.settle();
        if (this.#failure !== undefined) this.#noteWorking();
      }
    } catch (cause) {
      this.#fail(cause);
    } finally {
      this.#isWriting = false;
    }
  }

  async #write({ operations }: Batch): Promise<void> {
    const { syncMs } = this.#options;
    const isSync = this.#mustSync || syncMs === 0;
    this.#mustSync = false;
    try {
      await this.#database.batch([...operations], { sync: isSync });
    } catch (cause) {
      this.#isUnsynced ||= isSync;
      throw cause;
    }
    if (!isSync && !this.#isClosed) this.#syncTimer ??= setTimeout(() => this.#requestSync(), syncMs).unref();
  }

  #noteWorking(): void {
    this.#failure = undefined;
    this.#options.emit({ type: 'store-joined' }); // the failed write has succeeded, and nothing is lost
    if (!this.#isUnsynced) return;
    this.#isUnsynced = false;
    this.#options.onUnsynced();
  }

  /** Rejects what waits: whether it will be stored is not known. Its operations stay, so that the tables stay right. */
  #fail(cause: unknown): void {
    const isFirst = this.#failure === undefined;
    this.#failure = new StoreUnavailable(unavailabilityOf(cause), cause);
    const retried = createBatch();
    for (const { operations, bytes, settle } of this.#queue.splice(0)) {
      for (const operation of operations) retried.operations.push(operation);
      retried.bytes += bytes;
      settle(this.#failure);
    }
    this.#queue.push(retried);
    if (isFirst) this.#options.emit({ type: 'store-failed', cause: this.#failure });
    if (!this.#isClosed) this.#retryTimer = setTimeout(() => detach('store', this.#retry()), retryMs).unref();
  }

  /** After a failure the database takes no more writes, until it is opened again. */
  async #retry(): Promise<void> {
    this.#isWriting = true;
    try {
      await this.#database.close();
      await this.#database.open();
    } catch (cause) {
      this.#isWriting = false;
      return this.#fail(cause);
    }
    if (this.#isClosed) return this.#database.close();
    return this.#writeAll();
  }
}

/** LevelDB would take a directory without this file for an empty one, and remove the others. */
function hasLostItsBeginning(directory: string): boolean {
  if (existsSync(join(directory, 'CURRENT'))) return false;
  return readdirSync(directory).some((name) => name.endsWith('.ldb') || name.endsWith('.log'));
}

function createBatch(): Batch {
  let settle: Batch['settle'] = () => undefined;
  const written = new Promise<void>((resolve, reject) => {
    settle = (cause) => (cause === undefined ? resolve() : reject(cause));
  });
  written.catch(() => undefined); // a change that nobody waits for may fail: it is repeated anyway
  return { operations: [], bytes: 0, written, settle };
}
