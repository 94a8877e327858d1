import { close, constants, openSync, write } from 'node:fs';
import { openNonblocking } from '../nonblocking-output.ts';

/** What lines are written to: a file by its path, or a descriptor that this process was started with. */
export type LineTarget = string | 1 | 2;

/** Who is told of trouble. */
export interface LineFileOptions {
  readonly target: LineTarget;
  /** More than this waits for a target that takes nothing, and what comes then is lost (P8). */
  readonly maxQueuedBytes?: number;
  /** The longest pause before a target is tried again that did not take what was written; the first one is some milliseconds. */
  readonly retryMs?: number;
  /** Lines cannot be written, not for a second or more if their reader is only slow; said once until they can be again. */
  onStuck(cause: unknown): void;
  /** Lines can be written again. So many were lost meanwhile. */
  onUnstuck(lost: number): void;
  /** The line that says in the file itself how many lines are missing at this place. */
  gapLine(lost: number): string;
}

/** Written at once at most; what is written in one step lies together in the file. */
const maxPortionBytes = 256 * 1024;

/** A target that did not take what was written is tried again after this time, which doubles each time. */
const firstPauseMs = 2;

/** A pipe whose reader takes nothing for a moment is no news. */
const toleratedMs = 1_000;

/** How long the end of the process waits for what is not written. */
const lastWordMs = 1_000;

/**
 * Lines that are appended to a file, in order, without anybody waiting for them. A full disk, a pipe that is not read: lines
 * wait, and the newest are lost when too many do. That is never silent: it is told when it begins, and counted in the place in
 * the file where they are missing.
 */
export class LineFile {
  readonly #options: LineFileOptions;
  readonly #maxQueuedBytes: number;
  #fd: number;
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #lost = 0;
  /** That lines cannot be written was told. */
  #isStuck = false;
  /** Since when nothing of what was written is taken, on the monotonic clock. */
  #stalledAt: number | undefined;
  #pauseMs = firstPauseMs;
  #isWriting = false;
  /** Descriptors to be closed when nothing is being written. */
  readonly #retired: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Who waits for the end of all. */
  #onEmpty: (() => void) | undefined;

  /** Throws if the file cannot be opened. */
  constructor(options: LineFileOptions) {
    this.#options = options;
    this.#maxQueuedBytes = options.maxQueuedBytes ?? 8 * 1024 * 1024;
    this.#fd = open(options.target);
  }

  /** @param line without its end */
  write(line: string): void {
    const bytes = Buffer.from(`${line}\n`);
    if (this.#queuedBytes + bytes.length > this.#maxQueuedBytes) {
      this.#lost += 1;
      if (!this.#isStuck) this.#options.onStuck(new Error('too many wait to be written'));
      this.#isStuck = true;
      return;
    }
    if (this.#lost > 0 && !this.#isStuck) this.#closeGap();
    this.#push(bytes);
    if (this.#stalledAt === undefined) this.#pump(); // else its timer does
  }

  /** Opens the file anew, after it was moved away. Throws if it cannot be, and goes on with the old one. */
  reopen(): void {
    if (typeof this.#options.target !== 'string') return;
    const fd = open(this.#options.target);
    const old = this.#fd;
    this.#fd = fd;
    // What is being written goes to the old one, of which the number must not be another file's until then.
    if (this.#isWriting) this.#retired.push(old);
    else close(old, () => undefined);
    this.#pump();
  }

  /** Resolves when all is written, or it takes too long. @returns how many lines were not */
  async close(): Promise<number> {
    if (this.#queuedBytes > 0) {
      await new Promise<void>((resolve) => {
        this.#onEmpty = resolve;
        setTimeout(resolve, lastWordMs);
        this.#pump();
      });
    }
    clearTimeout(this.#timer);
    return this.#lost + this.#queue.length;
  }

  #push(bytes: Buffer): void {
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
  }

  #closeGap(): void {
    this.#push(Buffer.from(`${this.#options.gapLine(this.#lost)}\n`));
    this.#lost = 0;
  }

  #pump(): void {
    if (this.#isWriting) return;
    if (this.#queue.length === 0) return this.#onEmpty?.();
    clearTimeout(this.#timer);
    const portion = this.#takePortion();
    this.#isWriting = true;
    write(this.#fd, portion, (cause, written) => {
      this.#isWriting = false;
      for (const fd of this.#retired.splice(0)) close(fd, () => undefined);
      const rest = portion.subarray(cause === null ? written : 0);
      this.#queuedBytes -= portion.length - rest.length;
      if (rest.length > 0) this.#queue.unshift(rest);
      if (cause === null) this.#goOn();
      else this.#wait(cause);
    });
  }

  #takePortion(): Buffer {
    let bytes = 0;
    let count = 0;
    while (count < this.#queue.length && (count === 0 || bytes < maxPortionBytes)) {
      bytes += (this.#queue[count] as Buffer).length;
      count += 1;
    }
    return Buffer.concat(this.#queue.splice(0, count));
  }

  #goOn(): void {
    this.#stalledAt = undefined;
    this.#pauseMs = firstPauseMs;
    if (this.#isStuck) {
      this.#isStuck = false;
      this.#options.onUnstuck(this.#lost);
    }
    if (this.#lost > 0) this.#closeGap();
    this.#pump();
  }

  #wait(cause: NodeJS.ErrnoException): void {
    this.#stalledAt ??= performance.now();
    const isOnlySlow = cause.code === 'EAGAIN' && performance.now() - this.#stalledAt < toleratedMs;
    if (!this.#isStuck && !isOnlySlow) {
      this.#isStuck = true;
      this.#options.onStuck(cause);
    }
    this.#timer = setTimeout(() => this.#pump(), this.#pauseMs).unref();
    this.#pauseMs = Math.min(2 * this.#pauseMs, this.#options.retryMs ?? 1_000);
  }
}

/** Never waits for a reader: a pipe that nobody reads says so, in place of holding up whoever writes. */
const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

/** For the gateway's user alone: lines say who did what. */
const ownerOnly = 0o600;

const open = (target: LineTarget): number =>
  typeof target === 'string' ? openSync(target, flags, ownerOnly) : openNonblocking(target);
