import type { ByteRange } from './byte-range.ts';
import { meter } from './scan-meter.ts';

/** A JSON value without members: the gateway builds no other values from a peer's text. */
export type Scalar = string | number | boolean | null;

/** Longer strings and numbers are not built (P8). Names, URIs, levels and ids are all shorter. */
export const maxScalarBytes = 64 * 1024;

/** Building a value takes the time in which this many values are walked over, for each byte of its text. */
const walksPerByte = 8;

/**
 * Builds a value from a text of a peer. Only this function may (a lint rule holds that): building a value costs up to a
 * hundred times as much as reading its text, in time and in memory (P8).
 * @param text valid JSON
 * @param maxBytes undefined is returned for a longer text
 */
export function parseBounded(text: Buffer | string, maxBytes: number): unknown {
  if (text.length > maxBytes) return undefined;
  meter.noteWalk(walksPerByte * text.length, text.length);
  return JSON.parse(text.toString());
}

/** Builds a value from a text that the gateway wrote itself: its configuration, its store, another instance. */
export const parseOwn = (text: Buffer | string): unknown => JSON.parse(text.toString());

/**
 * Builds the value in a range of a text that was read before. Undefined for an object or a list, which a peer can make
 * as deep and as wide as it likes, and for more than `maxScalarBytes`.
 */
export function readScalar(text: Buffer, { start, end }: ByteRange): Scalar | undefined {
  const first = text[start];
  if (first === openBrace || first === openBracket || end - start > maxScalarBytes) return undefined;
  return JSON.parse(text.toString('utf8', start, end)) as Scalar;
}

const openBrace = 0x7b;
const openBracket = 0x5b;
