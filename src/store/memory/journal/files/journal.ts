// src/store/memory/journal/files: the files of the journal, and their directory.

import { close, fdatasync, rmSync, write } from 'node:fs';
import { promisify } from 'node:util';
import { detach } from '../../../../util/boundary.ts';
import { errorCodeOf } from '../../../../util/text/error-code.ts';
import { StoreUnavailable } from '../../../store-unavailable.ts';
import { createSegment, type SegmentFile } from './segment-files.ts';

const closeFile = promisify(close);
const syncFile = promisify(fdatasync);

/** Options of `Journal`. */
export interface JournalOptions {
  readonly directory: string;
  /** The files that exist, in order. The journal goes on in a new one. */
  readonly segments: readonly SegmentFile[];
  /** The longest time before written data are on the disk itself; 0 for before each change is reported as stored. */
  readonly syncMs: number;
  /** A write failed. The journal repeats it until it succeeds, and reports only the first failure. */
  onFailed(cause: unknown): void;
  /** The failed write has succeeded, and nothing is lost. */
  onWorking(): void;
  /**
   * The disk did not take what was written, and the kernel may have dropped it. The contents have to be written again,
   * to a new file.
   */
  onUnsynced(): void;
}

/** Frames that are written together, and the promise of their end. */
interface Batch {
  readonly buffers: Buffer[];
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

/** The most bytes of one write. More batches would only make the next changes wait. */
const bytesPerWrite = 4 * 1024 * 1024;

/**
 * The files that the changes are appended to. All frames that are queued while a write runs are written together. If a
 * write fails, its frames stay queued, and further changes are refused until the write succeeds. So the files always
 * have the changes in the order of the tables, without a gap.
 */
export class Journal {
  readonly #options: JournalOptions;
  readonly #segments: { readonly path: string; bytes: number }[];
  #number: number;
  #file: number;
  /** Waiting batches, oldest first. The first one is being written while `#isWriting`. */
  readonly #queue: Batch[] = [];
  #queuedBytes = 0;
  #isWriting = false;
  #failure: StoreUnavailable | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #syncTimer: NodeJS.Timeout | undefined;
  #syncing: Promise<void> | undefined;
  #mustRotate = false;
  #isClosed = false;

  /** Creates a new file. Throws if that is not possible. */
  constructor(options: JournalOptions) {
    this.#options = options;
    this.#segments = options.segments.map(({ path, bytes }) => ({ path, bytes }));
    this.#number = (options.segments.at(-1)?.number ?? 0) + 1;
    const { path, file } = createSegment(options.directory, this.#number);
    this.#segments.push({ path, bytes: 0 });
    this.#file = file;
  }

  /** The bytes of all files. */
  get bytes(): number {
    return this.#segments.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** The number of files. */
  get fileCount(): number {
    return this.#segments.length;
  }

  /** True while writes fail. */
  get isFailing(): boolean {
    return this.#failure !== undefined;
  }

  /** True if every frame is in the files. */
  get isSettled(): boolean {
    return this.#queue.length === 0;
  }

  /** Throws while no change is accepted. Call this before a change takes effect. */
  requireWritable(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#isClosed || this.#queuedBytes > maxQueuedBytes) throw new StoreUnavailable('unreachable');
  }

  /** Queues a frame. The frames of a journal are written in the order of these calls. */
  append(frame: readonly Buffer[]): void {
    let batch = this.#queue.at(-1);
    const isBeingWritten = this.#isWriting && this.#queue.length === 1;
    if (batch === undefined || isBeingWritten || batch.bytes > bytesPerWrite) {
      batch = createBatch();
      this.#queue.push(batch);
      // The caller's other changes of this turn join the batch.
      if (!this.#isWriting && this.#failure === undefined) queueMicrotask(() => this.#run());
    }
    for (const buffer of frame) {
      batch.buffers.push(buffer);
      batch.bytes += buffer.length;
      this.#queuedBytes += buffer.length;
    }
  }

  /** Resolves when all frames up to now are in the files. Rejects with `StoreUnavailable` if a write fails. */
  async settled(): Promise<void> {
    if (this.#failure !== undefined && this.#queue.length > 0) throw this.#failure;
    await this.#queue.at(-1)?.written;
  }

  /** Makes the frames that are queued from now on go to a new file. Returns the number of files before it. */
  rotate(): number {
    this.#mustRotate = true;
    return this.#segments.length;
  }

  /** Removes the oldest files. The caller has made sure that the newest one is on the disk. */
  removeOldest(count: number): void {
    for (const { path } of this.#segments.slice(0, count)) {
      rmSync(path, { force: true }); // somebody else may have removed it
      this.#segments.shift();
    }
  }

  /** Writes what is queued, and closes the file. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.settled().catch(() => undefined); // the failure was reported, and a process that ends cannot repeat it
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#syncTimer);
    await this.sync().catch((cause: unknown) => this.#options.onFailed(cause));
    await closeFile(this.#file);
  }

  #run(): void {
    if (!this.#isWriting) detach('store', this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    try {
      for (let batch = this.#queue[0]; batch !== undefined; batch = this.#queue[0]) {
        if (this.#mustRotate) await this.#openNext();
        await this.#write(batch);
        this.#queue.shift();
        this.#queuedBytes -= batch.bytes;
        batch.settle();
        if (this.#failure !== undefined) {
          this.#failure = undefined;
          this.#options.onWorking();
        }
      }
    } catch (cause) {
      this.#fail(cause);
    } finally {
      this.#isWriting = false;
    }
  }

  async #write({ buffers, bytes }: Batch): Promise<void> {
    const segment = this.#segments.at(-1) as { bytes: number };
    const content = buffers.length === 1 ? (buffers[0] as Buffer) : Buffer.concat(buffers, bytes);
    // A retry begins at the same place, so it replaces the part that an earlier attempt has written.
    for (let done = 0; done < bytes; ) done += await writeAt(this.#file, content, done, segment.bytes + done);
    if (this.#options.syncMs === 0) await syncFile(this.#file);
    else this.#syncTimer ??= setTimeout(() => detach('store', this.#syncLater()), this.#options.syncMs).unref();
    segment.bytes += bytes;
  }

  async #openNext(): Promise<void> {
    const { path, file } = createSegment(this.#options.directory, this.#number + 1);
    const previous = this.#file;
    this.#number += 1;
    this.#segments.push({ path, bytes: 0 });
    this.#file = file;
    this.#mustRotate = false;
    await this.#syncing?.catch(() => undefined); // it reports its own failure
    await syncFile(previous).catch((cause: unknown) => this.#noteUnsynced(cause));
    await closeFile(previous);
  }

  async #syncLater(): Promise<void> {
    this.#syncTimer = undefined;
    await this.sync().catch((cause: unknown) => this.#noteUnsynced(cause));
  }

  /** The disk may have lost what was written, even if a later sync succeeds. */
  #noteUnsynced(cause: unknown): void {
    this.#options.onFailed(cause);
    this.#options.onUnsynced();
  }

  /** Brings everything that was written up to now to the disk. A sync under way may have begun before the last write. */
  async sync(): Promise<void> {
    while (this.#syncing !== undefined) await this.#syncing.catch(() => undefined);
    this.#syncing = syncFile(this.#file).finally(() => {
      this.#syncing = undefined;
    });
    await this.#syncing;
  }

  /** Rejects what waits: whether it will be stored is not known. Its frames stay, so that the tables stay right. */
  #fail(cause: unknown): void {
    const isFirst = this.#failure === undefined;
    this.#failure = new StoreUnavailable(reasonOf(cause), cause);
    const waiting = this.#queue.splice(0);
    const retried = createBatch();
    for (const { buffers, bytes, settle } of waiting) {
      for (const buffer of buffers) retried.buffers.push(buffer);
      retried.bytes += bytes;
      settle(this.#failure);
    }
    this.#queue.push(retried);
    if (isFirst) this.#options.onFailed(this.#failure);
    if (!this.#isClosed) this.#retryTimer = setTimeout(() => this.#run(), retryMs).unref();
  }
}

function createBatch(): Batch {
  let settle: Batch['settle'] = () => undefined;
  const written = new Promise<void>((resolve, reject) => {
    settle = (cause) => (cause === undefined ? resolve() : reject(cause));
  });
  written.catch(() => undefined); // a change that nobody waits for may fail: it is repeated anyway
  return { buffers: [], bytes: 0, written, settle };
}

const writeAt = (file: number, content: Buffer, from: number, position: number): Promise<number> =>
  new Promise((resolve, reject) => {
    write(file, content, from, content.length - from, position, (error, count) =>
      error === null ? resolve(count) : reject(error),
    );
  });

/** The errors of a disk, or of a limit, that has no room. */
const noRoom = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

const reasonOf = (cause: unknown): StoreUnavailable['reason'] => (noRoom.has(errorCodeOf(cause)) ? 'full' : 'refused');
