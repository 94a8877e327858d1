import type { ByteRange } from './byte-range.ts';
import { openBrace, quote } from './reader.ts';
import { readScalar, type Scalar } from './scalar.ts';
import { scanMember } from './scan.ts';

/** A part of a text, and its replacement. */
export interface Replacement extends ByteRange {
  /** JSON text. */
  readonly by: string;
}

/**
 * Replaces some parts of a text and leaves the rest of it unchanged (P1).
 * @param replacements in the order of the text, not overlapping
 */
export function replaceParts(text: Buffer, replacements: readonly Replacement[]): Buffer {
  let { length } = text;
  for (const { start, end, by } of replacements) length += Buffer.byteLength(by) - (end - start);
  const replaced = Buffer.allocUnsafe(length);
  let from = 0;
  let to = 0;
  for (const { start, end, by } of replacements) {
    to += text.copy(replaced, to, from, start);
    to += replaced.write(by, to);
    from = end;
  }
  text.copy(replaced, to, from);
  return replaced;
}

/** Sorts a few replacements in the order of the text, in range: `sort` would allocate memory. */
export function sortByStart(replacements: Replacement[]): Replacement[] {
  for (let i = 1; i < replacements.length; i++) {
    const moved = replacements[i] as Replacement;
    let to = i;
    for (; to > 0 && (replacements[to - 1] as Replacement).start > moved.start; to--)
      replacements[to] = replacements[to - 1] as Replacement;
    replacements[to] = moved;
  }
  return replacements;
}

/**
 * Replaces the id of a message and leaves the rest of its text unchanged (P1). This is for messages that were read
 * before: it throws if the text is not one JSON object with an id.
 * @param idText the new id as JSON text
 */
export const spliceId = (text: Buffer, idText: string): Buffer => splice(text, ['id'], idText);

/** Replaces `params.requestId`, the id that a `notifications/cancelled` names; otherwise like `spliceId`. */
export const spliceCancelledId = (text: Buffer, idText: string): Buffer =>
  splice(text, ['params', 'requestId'], idText);

/** Replaces the value that these keys lead to; otherwise like `spliceId`. */
export function splice(text: Buffer, path: readonly string[], by: string): Buffer {
  const range = findRange(text, path);
  if (typeof range !== 'object') throw new Error(`the message has no ${path.join('.')}`);
  return replaceParts(text, [{ ...range, by }]);
}

/** The text of the value that these keys lead to, one object inside the other; undefined if there is none. */
export function valueAt(text: Buffer, path: readonly string[]): Buffer | undefined {
  const range = findRange(text, path);
  return typeof range === 'object' ? text.subarray(range.start, range.end) : undefined;
}

/** As `valueAt`, for an object: undefined if the value is of another kind. */
export const objectAt = (text: Buffer, path: readonly string[]): Buffer | undefined => ofKind(openBrace, text, path);

/** As `valueAt`, for a string with its quotes: undefined if the value is of another kind. */
export const stringAt = (text: Buffer, path: readonly string[]): Buffer | undefined => ofKind(quote, text, path);

function ofKind(first: number, text: Buffer, path: readonly string[]): Buffer | undefined {
  const value = valueAt(text, path);
  return value?.[0] === first ? value : undefined;
}

/** The value that these keys lead to; undefined if there is none, or if `readScalar` does not build it. */
export function scalarAt(text: Buffer, path: readonly string[]): Scalar | undefined {
  const range = findRange(text, path);
  return typeof range === 'object' ? readScalar(text, range) : undefined;
}

/** The code of an error response; undefined if there is none, or if it is not a number. */
export function errorCodeIn(response: Buffer): number | undefined {
  const code = scalarAt(response, ['error', 'code']);
  return typeof code === 'number' ? code : undefined;
}

/**
 * The range of the value that these keys lead to, one object inside the other. This is for values below the levels that
 * every message is read at.
 * @param foldsKeys true if a key that differs only in case counts as the same
 * @returns `absent` if there is no such value or the text is not JSON; `duplicate_key` if an object has a key of the
 *   path twice, so that readers could find different values
 */
export function findRange(
  text: Buffer,
  path: readonly string[],
  foldsKeys = false,
): ByteRange | 'absent' | 'duplicate_key' {
  let range: ByteRange = { start: 0, end: text.length };
  for (const key of path) {
    const found = scanMember(text.subarray(range.start, range.end), key, foldsKeys);
    if (typeof found !== 'object') return found;
    range = { start: range.start + found.start, end: range.start + found.end };
  }
  return range;
}
