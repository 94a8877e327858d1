import { LineSplitter } from '../../src/core/protocol/wire/lines.ts';

/** The result of a stream. Lines are Latin-1, so that each byte is visible. */
export interface Split {
  readonly lines: string[];
  readonly overflowed: boolean;
}

/** The lines of a stream with these chunks. */
export function split(chunks: readonly Buffer[], maxLineBytes = 1_000): Split {
  const splitter = new LineSplitter({ maxLineBytes });
  const lines = chunks.flatMap((chunk) => splitter.push(chunk));
  const last = splitter.flush();
  return {
    lines: [...lines, ...(last ? [last] : [])].map((line) => line.toString('latin1')),
    overflowed: splitter.overflowed,
  };
}

/** The same lines by a simple reference implementation. */
export function splitPlainly(bytes: Buffer, maxLineBytes: number): Split {
  const all = bytes.toString('latin1').split('\n');
  const tooLong = all.findIndex((line) => line.length > maxLineBytes);
  const lines = (tooLong === -1 ? all : all.slice(0, tooLong))
    .map((line) => line.replace(/^(?:\xef\xbb\xbf)+/, ''))
    .map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
    .filter((line) => line !== '');
  return { lines, overflowed: tooLong !== -1 };
}

/** A stream cut at some places. */
export function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end));
}
