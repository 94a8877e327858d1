import type { RequestId } from '../../faults.ts';
import { closeBrace, comma, JsonReader, openBrace, parseBounded, quote } from '../../json.ts';

/** Member values as they stand in the text; empty for a value that is too long or cut off. */
export type FoundValues = Map<string, string>;

/** The members at the beginning of an object. */
export interface MembersAtStart {
  readonly values: FoundValues;
  /** The position behind the object; undefined if it does not end within what was read, or is no valid JSON. */
  readonly end: number | undefined;
}

/**
 * The number of bytes that are read from the beginning. The large part of a message comes after its id, or before it.
 */
const maxStartBytes = 64 * 1024;
/** The number of members that are read from the end. A message has no more than four. */
const maxMembersAtEnd = 8;
/** No id, method or version is longer, even with all characters escaped. */
const maxValueBytes = 2_048;

const reader = new JsonReader();

/**
 * The first members of an object, the last of which may be cut off or invalid; undefined if the text is not an object. Of
 * a key that stands there twice, the last value counts.
 */
export function readMembersAtStart(text: Buffer): MembersAtStart | undefined {
  const window = text.subarray(0, maxStartBytes);
  const found: FoundValues = new Map();
  reader.begin(window, Number.POSITIVE_INFINITY);
  reader.skipSpace();
  if (window[reader.at] !== openBrace) {
    reader.release();
    return undefined;
  }
  let end: number | undefined;
  do {
    reader.at += 1;
    reader.skipSpace();
    const keyStart = reader.at;
    if (window[keyStart] !== quote || !reader.skipString()) break;
    const key = window.toString('utf8', keyStart + 1, reader.at - 1);
    if (!reader.skipColon()) break;
    found.set(key, '');
    const start = reader.at;
    if (!reader.skipValue(1)) break;
    const valueEnd = reader.at;
    reader.skipSpace();
    // A value that reaches the end of the window may be cut off.
    if (reader.at < window.length && valueEnd - start <= maxValueBytes)
      found.set(key, window.toString('utf8', start, valueEnd));
    if (window[reader.at] === closeBrace) end = reader.at + 1;
  } while (window[reader.at] === comma);
  reader.release();
  return { values: found, end };
}

/**
 * Adds the last members of an object, back to the first value that is not a scalar. In valid JSON these are the
 * object's own members: the last value ends before the last brace, and a quote within a string follows a backslash.
 */
export function addMembersAtEnd(text: Buffer, found: FoundValues): void {
  let at = spaceStart(text, text.length);
  if (text[at - 1] !== closeBrace) return;
  for (let count = 0; count < maxMembersAtEnd; count += 1) {
    const valueEnd = spaceStart(text, at - 1);
    const valueStart = text[valueEnd - 1] === quote ? stringStart(text, valueEnd) : scalarStart(text, valueEnd);
    const colonAt = valueStart === undefined ? -1 : spaceStart(text, valueStart) - 1;
    const keyEnd = spaceStart(text, colonAt);
    const keyStart = text[colonAt] === colon && text[keyEnd - 1] === quote ? stringStart(text, keyEnd) : undefined;
    if (keyStart === undefined) return;
    const key = text.toString('utf8', keyStart + 1, keyEnd - 1);
    if (!found.get(key)) found.set(key, text.toString('utf8', valueStart, valueEnd));
    at = spaceStart(text, keyStart);
    if (text[at - 1] !== comma) return;
  }
}

const colon = 0x3a;
const backslash = 0x5c;

/**
 * The position behind the last byte before `end` that is not white space. It does not follow white space without limit.
 */
function spaceStart(text: Buffer, end: number): number {
  const min = Math.max(0, end - maxValueBytes);
  let at = end;
  while (at > min && (text[at - 1] as number) <= 0x20) at -= 1;
  return at;
}

/** The position of the opening quote of the string that ends before `end`. */
function stringStart(text: Buffer, end: number): number | undefined {
  const min = Math.max(0, end - maxValueBytes);
  for (let at = end - 2; at >= min; at -= 1) {
    if (text[at] !== quote) continue;
    let before = at;
    while (before > min && text[before - 1] === backslash) before -= 1;
    if ((at - before) % 2 === 0) return at;
    at = before;
  }
  return undefined;
}

/** The position of the first byte of a number, `true`, `false` or `null` that ends before `end`. */
function scalarStart(text: Buffer, end: number): number | undefined {
  const min = Math.max(0, end - maxValueBytes);
  let at = end;
  while (at > min && isScalarByte(text[at - 1] as number)) at -= 1;
  return at < end && at > min ? at : undefined;
}

/** True for letters, digits, `+`, `-` and `.`. */
const isScalarByte = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) ||
  (byte >= 0x61 && byte <= 0x7a) ||
  byte === 0x45 ||
  byte === 0x2b ||
  byte === 0x2d ||
  byte === 0x2e;

const maxIdLength = 256;

/** Parses the text of an id. */
export function parseId(valueText: string | undefined): RequestId | undefined {
  if (!valueText || !/^(?:"|-?\d+(?:\.0+)?$)/.test(valueText)) return undefined;
  try {
    const id = parseBounded(valueText, 6 * maxIdLength + 2) as RequestId | undefined;
    return (typeof id === 'string' ? id.length <= maxIdLength : Number.isSafeInteger(id)) ? id : undefined;
  } catch {
    return undefined; // the text is not JSON: it was not checked up to here
  }
}
