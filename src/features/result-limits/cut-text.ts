import { findRange, scalarAt, scanList } from '../../core/protocol/json.ts';

/** A text of a result that is too long: where it is in the message. */
export interface LongText {
  /** The content, from `{` to `}`. */
  readonly content: { readonly start: number; readonly end: number };
  /** The inside of the JSON string. */
  readonly start: number;
  readonly end: number;
}

/** Texts of one result that are cut. Others stay as they are: nobody wants a thousand links (P8). */
const maxCuts = 16;

/**
 * Finds the texts of a tool's result that are longer than the limit, as they are written. Nothing is decoded, so a text of
 * megabytes costs one scan.
 * @param path the keys that lead to the list of contents
 */
export function longTextsIn(message: Buffer, path: readonly string[], maxBytes: number): readonly LongText[] {
  const list = findRange(message, path);
  if (typeof list !== 'object' || message[list.start] !== openBracket) return [];
  const found: LongText[] = [];
  for (const { start, end } of scanList(message.subarray(list.start, list.end)) ?? []) {
    const content = { start: list.start + start, end: list.start + end };
    if (end - start <= maxBytes || found.length === maxCuts) continue;
    const item = message.subarray(content.start, content.end);
    const range = findRange(item, ['text']);
    if (scalarAt(item, ['type']) !== 'text' || typeof range !== 'object' || item[range.start] !== quote) continue;
    const text = { content, start: content.start + range.start + 1, end: content.start + range.end - 1 };
    if (text.end - text.start > maxBytes) found.push(text);
  }
  return found;
}

/**
 * The longest beginning of a JSON string, of at most so many bytes, that ends between two characters: not within one of
 * several bytes, an escape sequence, or a pair of them.
 * @param text the inside of the string
 */
export function boundaryIn(text: Buffer, maxBytes: number): number {
  let at = Math.min(maxBytes, text.length);
  while (at > 0 && at < text.length && isContinuation(text[at])) at -= 1;
  at = beforeEscape(text, at);
  const last = escapeBefore(text, at);
  return last !== undefined && isHighSurrogate(text, last) ? last : at;
}

/** The start of the escape sequence that this position is in; the position itself if it is in none. */
function beforeEscape(text: Buffer, at: number): number {
  for (let start = at - 1; start >= 0 && start > at - longestEscape; start -= 1)
    if (isEscapeStart(text, start)) return start + lengthOfEscape(text, start) > at ? start : at;
  return at;
}

/** The start of the escape sequence that ends at this position. */
const escapeBefore = (text: Buffer, at: number): number | undefined =>
  at >= longestEscape &&
  isEscapeStart(text, at - longestEscape) &&
  lengthOfEscape(text, at - longestEscape) === longestEscape
    ? at - longestEscape
    : undefined;

/** True for a backslash that begins an escape sequence: an even number of backslashes is before it. */
function isEscapeStart(text: Buffer, at: number): boolean {
  if (text[at] !== backslash) return false;
  let before = at - 1;
  while (before >= 0 && text[before] === backslash) before -= 1;
  return (at - before) % 2 === 1;
}

const longestEscape = 6;

const lengthOfEscape = (text: Buffer, start: number): number => (text[start + 1] === letterU ? longestEscape : 2);

/** True for `\uD800` to `\uDBFF`, the first half of a character. */
const isHighSurrogate = (text: Buffer, start: number): boolean =>
  /^\\u[dD][89abAB]/.test(text.toString('latin1', start, start + longestEscape));

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

const [quote, backslash, openBracket, letterU] = [0x22, 0x5c, 0x5b, 0x75];
