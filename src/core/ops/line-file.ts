import { close, constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { backoff } from '../util/timing/backoff.ts';

/** The target of lines: a file by its path, or a descriptor that this process was started with. */
export type LineTarget = string | 1 | 2;

/** The settings of a line file. */
export interface LineFileOptions {
  readonly target: LineTarget;
  /**
   * True to write a line before `write` returns, so that the last one before an exit is not lost. Only for a target whose
   * writes never wait for a disk.
   */
  readonly isAtOnce?: boolean;
  /** The limit for bytes that wait for a stalled target. Further lines are lost (P8). */
  readonly maxQueuedBytes?: number;
  /** Called once when lines cannot be written. A reader that is only slow is reported after a second. */
  onStuck?(cause: unknown): void;
  /**
   * Called when lines can be written again.
   * @param lost how many lines were lost meanwhile
   */
  onUnstuck?(lost: number): void;
  /** Returns the line that reports in the file how many lines are missing at this place. */
  gapLine(lost: number): string;
  /** Changes each line that will be written, in the order of the file. The line grows by at most `maxSealBytes`. */
  readonly seal?: ((line: string) => string) | undefined;
}

/** What a seal may add to a line. */
const maxSealBytes = 64;

/** The limit for one write. Lines of one write are adjacent in the file. */
const maxPortionBytes = 256 * 1024;

/** The pause before another attempt to write. It begins with milliseconds, because most readers are only slow. */
const firstPauseMs = 2;
const pauseAfter = backoff({ firstMs: firstPauseMs, maxMs: 1_000 });

/** A pipe whose reader is slow is not reported before this time has passed. */
const slowReaderGraceMs = 1_000;

/** How long the exit of the process waits for lines that are not written; also where it cannot wait for events. */
const exitWaitMs = 1_000;
const blockedExitMs = 500;

/**
 * Appends lines to a file, stdout or stderr, in order, and never waits for a reader. If the disk is full or nobody reads a pipe, lines wait,
 * and the newest are lost above a limit. Losses are never silent: `onStuck` reports the begin, and a line in the file
 * counts them where lines are missing. docs/decisions/0042 says why no library does this.
 */
export class LineFile {
  readonly #options: LineFileOptions;
  readonly #maxQueuedBytes: number;
  #fd: number;
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  /** The lines that are not completely written. A portion that failed is one buffer with many of them. */
  #queuedLines = 0;
  #lost = 0;
  /** True if `onStuck` has reported that lines cannot be written. */
  #isStuck = false;
  /** When the target stopped taking bytes, on the monotonic clock. */
  #stalledAt: number | undefined;
  /** Failed attempts since the target took bytes. */
  #failures = 0;
  #isWriting = false;
  /** Descriptors to close when no write is in progress. */
  readonly #retired: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** True after an attempt that failed for another reason than a slow reader. */
  #isBroken = false;
  /** Resolves `close` when all lines are written. */
  #onEmpty: (() => void) | undefined;

  /** @throws if the file cannot be opened */
  constructor(options: LineFileOptions) {
    this.#options = options;
    this.#maxQueuedBytes = options.maxQueuedBytes ?? 8 * 1024 * 1024;
    this.#fd = open(options.target);
  }

  /**
   * @param line without its line break
   * @returns the line as it will be written; undefined if it is lost
   */
  write(line: string): string | undefined {
    if (this.#queuedBytes + Buffer.byteLength(line) + maxSealBytes > this.#maxQueuedBytes) {
      this.#lost += 1;
      if (!this.#isStuck) this.#options.onStuck?.(new Error('too many lines are waiting'));
      this.#isStuck = true;
      return undefined;
    }
    if (this.#lost > 0 && !this.#isStuck) this.#queueGapLine();
    const written = this.#push(line);
    if (this.#stalledAt === undefined) this.#writeNext(); // otherwise the timer writes it
    return written;
  }

  /**
   * Opens the file again, after it was moved away.
   * @throws if the file cannot be opened; the old descriptor stays in use
   */
  reopen(): void {
    if (typeof this.#options.target !== 'string') return;
    const fd = open(this.#options.target);
    const old = this.#fd;
    this.#fd = fd;
    // A write in progress goes to the old descriptor. If it were closed now, its number could belong to another file.
    if (this.#isWriting) this.#retired.push(old);
    else close(old, () => undefined);
    this.#writeNext();
  }

  /**
   * Resolves when all lines are written, or after `exitWaitMs`.
   * @returns how many lines were not written
   */
  async close(): Promise<number> {
    if (this.#queuedBytes > 0) {
      await new Promise<void>((resolve) => {
        this.#onEmpty = resolve;
        setTimeout(resolve, exitWaitMs);
        this.#writeNext();
      });
    }
    clearTimeout(this.#timer);
    return this.#lost + this.#queuedLines;
  }

  /** Writes what waits, for a short time. For the `exit` listener, which cannot wait for events. Only with `isAtOnce`. */
  flush(): void {
    const until = performance.now() + blockedExitMs;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    if (this.#lost > 0) this.#queueGapLine();
    this.#writeNext();
    while (this.#queue.length > 0 && !this.#isBroken && performance.now() < until) {
      Atomics.wait(pause, 0, 0, firstPauseMs);
      this.#writeNext();
    }
  }

  #push(line: string): string {
    const { seal } = this.#options;
    const written = seal === undefined ? line : seal(line);
    const bytes = Buffer.from(`${written}\n`);
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    this.#queuedLines += countLines(bytes);
    return written;
  }

  #queueGapLine(): void {
    this.#push(this.#options.gapLine(this.#lost));
    this.#lost = 0;
  }

  #writeNext(): void {
    if (this.#isWriting) return;
    if (this.#queue.length === 0) return this.#onEmpty?.();
    clearTimeout(this.#timer);
    const portion = this.#takePortion();
    this.#isWriting = true;
    if (this.#options.isAtOnce !== true)
      return write(this.#fd, portion, (cause, written) => this.#onTried(portion, cause, written));
    let written = 0;
    let failure: NodeJS.ErrnoException | null = null;
    try {
      written = writeSync(this.#fd, portion);
    } catch (cause) {
      failure = cause as NodeJS.ErrnoException;
    }
    this.#onTried(portion, failure, written);
  }

  #onTried(portion: Buffer, cause: NodeJS.ErrnoException | null, written: number): void {
    this.#isWriting = false;
    for (const fd of this.#retired.splice(0)) close(fd, () => undefined);
    const rest = portion.subarray(cause === null ? written : 0);
    this.#queuedBytes -= portion.length - rest.length;
    this.#queuedLines -= countLines(portion) - countLines(rest);
    if (rest.length > 0) this.#queue.unshift(rest);
    if (cause === null) this.#onWritten();
    else this.#onWriteFailed(cause);
  }

  #takePortion(): Buffer {
    if (this.#queue.length === 1) return this.#queue.pop() as Buffer;
    let bytes = 0;
    let count = 0;
    while (count < this.#queue.length && (count === 0 || bytes < maxPortionBytes)) {
      bytes += (this.#queue[count] as Buffer).length;
      count += 1;
    }
    return Buffer.concat(this.#queue.splice(0, count));
  }

  #onWritten(): void {
    this.#isBroken = false;
    this.#stalledAt = undefined;
    this.#failures = 0;
    if (this.#isStuck) {
      this.#isStuck = false;
      this.#options.onUnstuck?.(this.#lost);
    }
    if (this.#lost > 0) this.#queueGapLine();
    this.#writeNext();
  }

  #onWriteFailed(cause: NodeJS.ErrnoException): void {
    this.#stalledAt ??= performance.now();
    this.#isBroken = cause.code !== 'EAGAIN';
    const isOnlySlow = !this.#isBroken && performance.now() - this.#stalledAt < slowReaderGraceMs;
    if (!this.#isStuck && !isOnlySlow) {
      this.#isStuck = true;
      this.#options.onStuck?.(cause);
    }
    this.#timer = setTimeout(() => this.#writeNext(), pauseAfter(this.#failures)).unref();
    this.#failures += 1;
  }
}

/** The lines that end in these bytes. */
function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(lineBreak); at >= 0; at = bytes.indexOf(lineBreak, at + 1)) count += 1;
  return count;
}

const lineBreak = 0x0a;

/** A write never blocks on a reader: a pipe that nobody reads fails with EAGAIN. */
const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

/** Lines say who did what, so only the user of the gateway may read them. */
const ownerOnly = 0o600;

const open = (target: LineTarget): number =>
  typeof target === 'string' ? openSync(target, flags, ownerOnly) : openNonblocking(target);

/** A terminal does not become the controlling terminal of this process. */
const outputFlags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/**
 * Returns a descriptor for stdout or stderr that fails with EAGAIN where its reader takes nothing, instead of blocking.
 * A file takes everything, so its descriptor is returned unchanged.
 */
function openNonblocking(target: 1 | 2): number {
  const stat = fstatSync(target);
  // A socket cannot be opened again. Node.js makes it nonblocking when it creates the stream.
  if (stat.isSocket()) makeStream(target);
  if (!stat.isFIFO() && !isatty(target)) return target;
  try {
    // A new open file description keeps other users of the same pipe or terminal in blocking mode.
    return openSync(`/proc/self/fd/${target}`, outputFlags);
  } catch {
    return target; // no /proc here, or a terminal of another user
  }
}

const makeStream = (target: 1 | 2): NodeJS.WriteStream => (target === 1 ? process.stdout : process.stderr);
