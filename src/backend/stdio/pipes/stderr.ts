import type { Readable } from 'node:stream';
import { detachedCopy } from '../../../util/detached-bytes.ts';
import { createLineTail } from './line-tail.ts';
import { escapeControlCharacters } from './printable.ts';

/** Options for a server's stderr. */
export interface StderrOptions {
  /** Called with one line for the log: at most `maxLoggedBytes` of it, control characters escaped. */
  onLine?: ((line: string) => void) | undefined;
  /** How much of a line is held and reported; stops a server that writes without a line end from filling the memory. */
  readonly maxLoggedBytes?: number;
  /** Above this rate lines are counted instead of reported; stops a server from filling the disk with our log. */
  readonly linesPerSecond?: number;
  readonly burstLines?: number;
}

const lf = 0x0a;
const cr = 0x0d;
const reportDroppedAfterMs = 1_000;
const recentBytes = 8 * 1024;
const recentLineCount = 20;
const emptyBuffer: Buffer = Buffer.alloc(0);

/**
 * Reads a server's stderr to its end, even if nobody wants it: a server whose stderr is full stands still.
 * @returns the last lines for messages to the operator (at most 20, of the last 8 KiB), whatever the rate
 */
export function drainStderr(
  stream: Readable,
  { onLine, maxLoggedBytes = 2_048, linesPerSecond = 20, burstLines = 100 }: StderrOptions = {},
): { recentLines(): string[] } {
  const tail = createLineTail(recentBytes);
  let partialLine = emptyBuffer; // the kept part of the unfinished line; thousands of silent servers hold nothing
  let lineBytes = 0; // length of that line, including dropped bytes
  let allowedLines = burstLines;
  let refilledAt = performance.now();
  let droppedLines = 0;
  let reportTimer: NodeJS.Timeout | undefined;

  const refill = () => {
    const now = performance.now();
    allowedLines = Math.min(burstLines, allowedLines + ((now - refilledAt) / 1_000) * linesPerSecond);
    refilledAt = now;
  };

  const reportDropped = () => {
    clearTimeout(reportTimer);
    reportTimer = undefined;
    if (droppedLines > 0) onLine?.(`(${droppedLines} more lines of stderr were dropped: too many per second)`);
    droppedLines = 0;
  };

  const add = (part: Buffer) => {
    const kept = part.subarray(0, maxLoggedBytes - partialLine.length);
    lineBytes += part.length;
    partialLine = partialLine.length === 0 ? kept : Buffer.concat([partialLine, kept]);
  };

  const endLine = () => {
    const text = partialLine.at(-1) === cr ? partialLine.subarray(0, -1) : partialLine;
    const droppedBytes = lineBytes - partialLine.length;
    partialLine = emptyBuffer;
    lineBytes = 0;
    if (text.length === 0) return;
    if (allowedLines < 1) {
      droppedLines += 1;
      reportTimer ??= setTimeout(reportDropped, reportDroppedAfterMs).unref();
      return;
    }
    allowedLines -= 1;
    onLine?.(escapeControlCharacters(text) + (droppedBytes > 0 ? ` … (${droppedBytes} more bytes)` : ''));
  };

  stream.on('data', (chunk: Buffer) => {
    tail.push(chunk);
    refill();
    for (let from = 0; from < chunk.length; ) {
      const end = chunk.indexOf(lf, from);
      const to = end === -1 ? chunk.length : end;
      add(chunk.subarray(from, to));
      if (end !== -1) endLine();
      from = to + 1;
    }
    if (partialLine.length > 0) partialLine = detachedCopy(partialLine); // releases the chunk
  });
  stream.on('error', () => undefined); // the stream has ended; 'close' follows
  stream.once('close', () => {
    refill();
    endLine();
    reportDropped();
  });

  return {
    recentLines: () =>
      tail
        .read()
        .toString('latin1') // keeps bytes as they are; each line is decoded separately
        .split(/\r?\n/)
        .filter((text) => text.length > 0)
        .slice(-recentLineCount)
        .map((text) => escapeControlCharacters(Buffer.from(text, 'latin1').subarray(0, maxLoggedBytes))),
  };
}
