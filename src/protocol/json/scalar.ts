import type { ByteRange } from './byte-range.ts';

/** A JSON value without members: the gateway builds no other values from a peer's text. */
export type Scalar = string | number | boolean | null;

/** Longer strings and numbers are not built (P8). Names, URIs, levels and ids are all shorter. */
export const maxScalarBytes = 64 * 1024;

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
