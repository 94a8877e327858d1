import type { ByteRange } from './byte-range.ts';
import { readScalar, type Scalar } from './scalar.ts';
import { scanMember } from './scan.ts';

/** A part of a text, and what stands there instead. */
export interface Replacement extends ByteRange {
  /** JSON text. */
  readonly by: string;
}

/**
 * The text with some of its parts replaced, and the rest of it as it is (P1).
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

/** Puts replacements, few as they are, in the order of the text, in place: without what `sort` allocates. */
export function inOrder(replacements: Replacement[]): Replacement[] {
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
 * Replaces the id of a message and leaves the rest of its text as it is (P1). For messages that were read before: throws
 * if the text is not one JSON object with an id.
 * @param idText the new id as JSON text
 */
export const spliceId = (text: Buffer, idText: string): Buffer => splice(text, ['id'], idText);

/** Replaces `params.requestId`, the id that a `notifications/cancelled` names; as `spliceId` otherwise. */
export const spliceCancelledId = (text: Buffer, idText: string): Buffer =>
  splice(text, ['params', 'requestId'], idText);

function splice(text: Buffer, path: readonly string[], by: string): Buffer {
  const place = findRange(text, path);
  if (typeof place !== 'object') throw new Error(`the message has no ${path.join('.')}`);
  return replaceParts(text, [{ ...place, by }]);
}

/** The text of a value that is reached by these keys, one object inside the other; undefined if there is none. */
export function valueAt(text: Buffer, path: readonly string[]): Buffer | undefined {
  const place = findRange(text, path);
  return typeof place === 'object' ? text.subarray(place.start, place.end) : undefined;
}

/** The value that is reached by these keys; undefined if there is none, or if it is one that `scalarIn` does not build. */
export function scalarAt(text: Buffer, path: readonly string[]): Scalar | undefined {
  const place = findRange(text, path);
  return typeof place === 'object' ? readScalar(text, place) : undefined;
}

/** The code of the error that a response is; undefined if there is none, or if it is no number. */
export function errorCodeIn(response: Buffer): number | undefined {
  const code = scalarAt(response, ['error', 'code']);
  return typeof code === 'number' ? code : undefined;
}

/**
 * Where a value lies that is reached by these keys, one object inside the other: for what lies deeper than the levels that
 * are read of every message.
 * @param foldsKeys true if a key that differs from one of these in case alone counts as the same
 * @returns `absent` if there is no such value or the text is no JSON; `duplicate_key` if a key of the way stands twice in its
 *   object, so that readers could take different values for it
 */
export function findRange(
  text: Buffer,
  path: readonly string[],
  foldsKeys = false,
): ByteRange | 'absent' | 'duplicate_key' {
  let place: ByteRange = { start: 0, end: text.length };
  for (const key of path) {
    const found = scanMember(text.subarray(place.start, place.end), key, foldsKeys);
    if (typeof found !== 'object') return found;
    place = { start: place.start + found.start, end: place.start + found.end };
  }
  return place;
}
