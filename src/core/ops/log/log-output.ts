import { writeSync } from 'node:fs';
import { backoff } from '../../util/timing/backoff.ts';
import { openNonblocking } from '../nonblocking-output.ts';

/** The limit for lines that wait for a reader (P8): some thousand lines. Further lines are lost. */
const maxWaitingBytes = 1024 * 1024;

/** The pause before another attempt to write. */
const firstPauseMs = 2;
const pauseAfter = backoff({ firstMs: firstPauseMs, maxMs: 250 });

/** How long the exit of the process waits for the reader. */
const exitWaitMs = 500;

/** The settings of a log output. */
export interface LogOutputOptions {
  readonly target: 1 | 2;
  /** Returns the line, with its line break, that reports lost lines at the place where they are missing. */
  lostLine(lost: number): string;
}

interface WaitingEntry {
  readonly bytes: Buffer;
  /** How many lines are lost if this entry is. */
  readonly lines: number;
}

/**
 * Writes log lines to stdout or stderr. Each line is written at once, so that the last line before an exit is not lost.
 * A slow reader never blocks the gateway: lines wait, and are lost above a limit. When the reader continues, a line
 * reports the loss.
 */
export class LogOutput {
  readonly #lostLine: (lost: number) => string;
  readonly #fd: number;
  /** Entries that the reader has not taken, oldest first. The first one may be the rest of a line. */
  #waiting: WaitingEntry[] = [];
  #waitingBytes = 0;
  #lost = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Attempts since the reader took bytes. */
  #failures = 0;

  constructor({ target, lostLine }: LogOutputOptions) {
    this.#lostLine = lostLine;
    this.#fd = openNonblocking(target);
  }

  /** @param line with its line break */
  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > maxWaitingBytes) {
      this.#lost += 1;
      return;
    }
    if (this.#lost > 0) this.#queueLossLine();
    this.#push(bytes, 1);
    if (this.#timer === undefined) this.#writeWaiting();
  }

  /** Writes the waiting lines, for at most `exitWaitMs`. Made for the `exit` listener, which cannot wait for events. */
  flush(): void {
    const until = performance.now() + exitWaitMs;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    if (this.#lost > 0) this.#queueLossLine();
    this.#writeWaiting();
    while (this.#waiting.length > 0 && performance.now() < until) {
      Atomics.wait(pause, 0, 0, firstPauseMs);
      this.#writeWaiting();
    }
  }

  #queueLossLine(): void {
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
      const written = this.#tryWrite(bytes);
      if (written === undefined) return;
      this.#failures = 0;
      this.#waitingBytes -= written;
      if (written < bytes.length) this.#waiting[0] = { bytes: bytes.subarray(written), lines };
      else this.#waiting.shift();
      // The reader has caught up, so the loss is reported at its place.
      if (this.#waiting.length === 0 && this.#lost > 0) this.#queueLossLine();
    }
  }

  /** Returns how many bytes were written; undefined if the reader takes none now, or is gone. */
  #tryWrite(bytes: Buffer): number | undefined {
    try {
      return writeSync(this.#fd, bytes);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'EAGAIN') this.#scheduleRetry();
      else this.#dropAll();
      return undefined;
    }
  }

  #scheduleRetry(): void {
    this.#timer = setTimeout(() => this.#writeWaiting(), pauseAfter(this.#failures)).unref();
    this.#failures += 1;
  }

  /**
   * Drops all waiting lines, because the reader is gone or the disk is full. There is nowhere to report the loss now; a
   * later line may be written again.
   */
  #dropAll(): void {
    for (const { lines } of this.#waiting.splice(0)) this.#lost += lines;
    this.#waitingBytes = 0;
  }
}
