import { writeSync } from 'node:fs';
import { openNonblocking } from '../nonblocking-output.ts';

/** What waits for a reader that takes nothing, at most; what comes then is lost (P8). Some thousand lines. */
const maxWaitingBytes = 1024 * 1024;

/** A reader that takes nothing is tried again after this time, which doubles each time. */
const firstPauseMs = 2;
const longestPauseMs = 250;

/** How long the end of the process waits for a reader. */
const lastWordMs = 500;

/** What the output of a log is made with. */
export interface LogOutputOptions {
  readonly target: 1 | 2;
  /** The line that says how many lines are missing at its place, with its end. */
  lostLine(lost: number): string;
}

interface Waiting {
  readonly bytes: Buffer;
  /** How many lines are missing if this is. */
  readonly lines: number;
}

/**
 * Where the lines of the log go. Each is written at once, so that the last one before an exit is there. A reader that stalls holds
 * nobody up: lines wait then, and are lost when too many do. As soon as the reader goes on, a line says how many were lost.
 */
export class LogOutput {
  readonly #lostLine: (lost: number) => string;
  readonly #fd: number;
  /** What was not taken yet, oldest first. The first one may be the rest of a line. */
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #lost = 0;
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = firstPauseMs;

  constructor({ target, lostLine }: LogOutputOptions) {
    this.#lostLine = lostLine;
    this.#fd = openNonblocking(target);
  }

  /** @param line with its end */
  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > maxWaitingBytes) {
      this.#lost += 1;
      return;
    }
    if (this.#lost > 0) this.#tellLoss();
    this.#push(bytes, 1);
    if (this.#timer === undefined) this.#writeWaiting();
  }

  /** Writes what waits, for as long as the end of a process may wait for a reader. For the listener of `exit`. */
  flush(): void {
    const until = performance.now() + lastWordMs;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    if (this.#lost > 0) this.#tellLoss();
    this.#writeWaiting();
    while (this.#waiting.length > 0 && performance.now() < until) {
      Atomics.wait(pause, 0, 0, firstPauseMs);
      this.#writeWaiting();
    }
  }

  #tellLoss(): void {
    this.#push(Buffer.from(this.#lostLine(this.#lost)), this.#lost);
    this.#lost = 0;
  }

  #push(bytes: Buffer, lines: number): void {
    this.#waiting.push({ bytes, lines });
    this.#waitingBytes += bytes.length;
  }

  #writeWaiting(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      const { bytes, lines } = first;
      const written = this.#take(bytes);
      if (written === undefined) return;
      this.#pauseMs = firstPauseMs;
      this.#waitingBytes -= written;
      if (written < bytes.length) this.#waiting[0] = { bytes: bytes.subarray(written), lines };
      else this.#waiting.shift();
      // The reader has caught up, and hears what is missing now, in its place.
      if (this.#waiting.length === 0 && this.#lost > 0) this.#tellLoss();
    }
  }

  /** Returns how many bytes were taken; undefined if the reader takes none now, or never again. */
  #take(bytes: Buffer): number | undefined {
    try {
      return writeSync(this.#fd, bytes);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'EAGAIN') this.#tryLater();
      else this.#dropAll();
      return undefined;
    }
  }

  #tryLater(): void {
    this.#timer = setTimeout(() => this.#writeWaiting(), this.#pauseMs).unref();
    this.#pauseMs = Math.min(2 * this.#pauseMs, longestPauseMs);
  }

  /** The reader is gone, or the disk is full. There is nowhere to say so; a later line may be taken again. */
  #dropAll(): void {
    for (const { lines } of this.#waiting.splice(0)) this.#lost += lines;
    this.#waitingBytes = 0;
  }
}
