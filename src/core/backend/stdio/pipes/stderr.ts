import type { Readable } from 'node:stream';
import { detachedCopy } from '../../../util/detached-bytes.ts';
import { escapeControlCharacters } from './printable.ts';

/** Limits on the lines of a server's stderr. */
export interface StderrLimits {
  /** How much of a line is held and reported; stops a server that writes without a line end from filling the memory. */
  readonly maxLoggedBytes: number;
  /** Above this rate lines are counted instead of reported; stops a server from filling the disk with our log. */
  readonly linesPerSecond: number;
  readonly burstLines: number;
}

const defaultLimits: StderrLimits = { maxLoggedBytes: 2_048, linesPerSecond: 20, burstLines: 100 };

const lf = 0x0a;
const cr = 0x0d;
const reportDroppedAfterMs = 1_000;
const recentBytes = 8 * 1024;
const recentLineCount = 20;
const emptyBuffer: Buffer = Buffer.alloc(0);

const ignoreError = (): void => undefined; // the stream has ended; 'close' follows

/** Reads a server's stderr to its end, even if nobody wants it: a server whose stderr is full stands still. */
export class StderrReader {
  readonly #onLine: ((line: string) => void) | undefined;
  readonly #limits: StderrLimits;
  /** Undefined until the server writes: thousands of silent servers hold nothing. */
  #tail: LineTail | undefined;
  /** The kept part of the unfinished line. */
  #partialLine = emptyBuffer;
  /** Length of that line, including dropped bytes. */
  #lineBytes = 0;
  #allowedLines: number;
  #refilledAt = 0;
  #droppedLines = 0;
  #reportTimer: NodeJS.Timeout | undefined;

  /** @param onLine called with one line for the log: at most `maxLoggedBytes` of it, control characters escaped */
  constructor(stream: Readable, onLine?: (line: string) => void, limits = defaultLimits) {
    this.#onLine = onLine;
    this.#limits = limits;
    this.#allowedLines = limits.burstLines;
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
    stream.on('error', ignoreError);
    stream.on('close', () => this.#close());
  }

  /** The last lines for messages to the operator (at most 20, of the last 8 KiB), whatever the rate. */
  recentLines(): string[] {
    const recent = this.#tail?.read() ?? emptyBuffer;
    return recent
      .toString('latin1') // keeps bytes as they are; each line is decoded separately
      .split(/\r?\n/)
      .filter((text) => text.length > 0)
      .slice(-recentLineCount)
      .map((text) => escapeControlCharacters(Buffer.from(text, 'latin1').subarray(0, this.#limits.maxLoggedBytes)));
  }

  #take(chunk: Buffer): void {
    this.#tail ??= new LineTail(recentBytes);
    this.#tail.push(chunk);
    this.#refill();
    for (let from = 0; from < chunk.length; ) {
      const end = chunk.indexOf(lf, from);
      const to = end === -1 ? chunk.length : end;
      this.#add(chunk.subarray(from, to));
      if (end !== -1) this.#endLine();
      from = to + 1;
    }
    if (this.#partialLine.length > 0) this.#partialLine = detachedCopy(this.#partialLine); // releases the chunk
  }

  #close(): void {
    this.#refill();
    this.#endLine();
    this.#reportDropped();
  }

  #refill(): void {
    const { burstLines, linesPerSecond } = this.#limits;
    const now = performance.now();
    this.#allowedLines = Math.min(burstLines, this.#allowedLines + ((now - this.#refilledAt) / 1_000) * linesPerSecond);
    this.#refilledAt = now;
  }

  #add(part: Buffer): void {
    const kept = part.subarray(0, this.#limits.maxLoggedBytes - this.#partialLine.length);
    this.#lineBytes += part.length;
    this.#partialLine = this.#partialLine.length === 0 ? kept : Buffer.concat([this.#partialLine, kept]);
  }

  #endLine(): void {
    const line = this.#partialLine;
    const text = line.at(-1) === cr ? line.subarray(0, -1) : line;
    const droppedBytes = this.#lineBytes - line.length;
    this.#partialLine = emptyBuffer;
    this.#lineBytes = 0;
    if (text.length === 0) return;
    if (this.#allowedLines < 1) {
      this.#droppedLines += 1;
      this.#reportTimer ??= setTimeout(() => this.#reportDropped(), reportDroppedAfterMs).unref();
      return;
    }
    this.#allowedLines -= 1;
    this.#onLine?.(escapeControlCharacters(text) + (droppedBytes > 0 ? ` … (${droppedBytes} more bytes)` : ''));
  }

  #reportDropped(): void {
    clearTimeout(this.#reportTimer);
    this.#reportTimer = undefined;
    if (this.#droppedLines > 0)
      this.#onLine?.(`(${this.#droppedLines} more lines of stderr were dropped: too many per second)`);
    this.#droppedLines = 0;
  }
}

const firstBytes = 256;
const noBytes: Buffer = Buffer.alloc(0);

/**
 * Keeps the last `maxBytes` of a stream in one buffer that grows as needed: most streams bring nothing, or one line at
 * their start.
 */
export class LineTail {
  readonly #maxBytes: number;
  #kept = noBytes;
  #keptBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): void {
    const added = chunk.subarray(-this.#maxBytes);
    const needed = Math.min(this.#maxBytes, this.#keptBytes + added.length);
    if (needed > this.#kept.length) this.#grow(needed);
    const remainingBytes = needed - added.length;
    this.#kept.copyWithin(0, this.#keptBytes - remainingBytes, this.#keptBytes);
    added.copy(this.#kept, remainingBytes);
    this.#keptBytes = needed;
  }

  /** Returns a view of the last bytes, valid until the next `push`. */
  read(): Buffer {
    return this.#kept.subarray(0, this.#keptBytes);
  }

  #grow(needed: number): void {
    // An own allocation instead of a slice of the shared pool: one slice would keep the whole pool alive.
    const bytes = Math.min(this.#maxBytes, Math.max(needed, 2 * this.#kept.length, firstBytes));
    const larger = Buffer.allocUnsafeSlow(bytes);
    this.#kept.copy(larger, 0, 0, this.#keptBytes);
    this.#kept = larger;
  }
}
