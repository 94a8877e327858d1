import { faultMessage, type RequestId } from '../faults.ts';
import { closeBrace, comma, JsonReader, openBrace, quote } from '../json/reader.ts';

/**
 * What is read in place of a message of a server that breaks a bound of the scan: whoever waits for it is told at once. Of a
 * response that is an error with its id, of a request the same one without its params, which is to be refused. Undefined if the
 * text does not say which of them it is, and of which id, at its beginning or its end.
 * @param text one that was refused for its depth or width, so that a large value is somewhere in it
 */
export function createStandIn(text: Buffer): string | undefined {
  const members = membersAtStart(text);
  if (members === undefined) return undefined;
  addMembersAtEnd(text, members);
  const id = idOf(members.get('id'));
  if (members.get('jsonrpc') !== '"2.0"' || id === undefined) return undefined;
  const hasOutcome = members.has('result') || members.has('error');
  const method = members.get('method');
  if (method === undefined) return hasOutcome ? faultMessage('response_too_complex', id) : undefined;
  return !hasOutcome && method.startsWith('"')
    ? `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${method}}`
    : undefined;
}

/** The values of members as they stand in the text. Of those that are long, or are no scalars, nothing. */
type FoundValues = Map<string, string>;

/** So much is looked at from the beginning on. What makes a message large stands behind its id, or before it. */
const maxStartBytes = 64 * 1024;
/** So many members are looked at from the end on. A message has no more than four. */
const maxMembersAtEnd = 8;
/** No id, method or version is longer, with all characters escaped. */
const maxValueBytes = 2_048;

const reader = new JsonReader();

/** The first members of an object, the last of which may not be whole; undefined if the text is none. */
function membersAtStart(text: Buffer): FoundValues | undefined {
  const window = text.subarray(0, maxStartBytes);
  const found: FoundValues = new Map();
  reader.begin(window, Number.POSITIVE_INFINITY);
  reader.skipSpace();
  if (window[reader.at] !== openBrace) return undefined;
  do {
    reader.at += 1;
    reader.skipSpace();
    const keyAt = reader.at;
    if (window[keyAt] !== quote || !reader.skipString()) break;
    const key = window.toString('utf8', keyAt + 1, reader.at - 1);
    if (!reader.skipColon()) break;
    found.set(key, '');
    const start = reader.at;
    if (!reader.skipValue(1)) break;
    const end = reader.at;
    reader.skipSpace();
    // What reaches to the end of the window may be cut.
    if (reader.at < window.length && end - start <= maxValueBytes) found.set(key, window.toString('utf8', start, end));
  } while (window[reader.at] === comma);
  reader.release();
  return found;
}

/**
 * Adds the last members of an object, back to the first value that is no scalar. Of a text that is JSON these are its own: the
 * last value ends before the last brace, and within a string a quote has a backslash before it.
 */
function addMembersAtEnd(text: Buffer, found: FoundValues): void {
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

/** The place behind the last byte before `end` that is no white space. White space without end is not followed. */
function spaceStart(text: Buffer, end: number): number {
  const least = Math.max(0, end - maxValueBytes);
  let at = end;
  while (at > least && (text[at - 1] as number) <= 0x20) at -= 1;
  return at;
}

/** The place of the quote that opens the string whose closing quote is before `end`. */
function stringStart(text: Buffer, end: number): number | undefined {
  const least = Math.max(0, end - maxValueBytes);
  for (let at = end - 2; at >= least; at -= 1) {
    if (text[at] !== quote) continue;
    let before = at;
    while (before > least && text[before - 1] === backslash) before -= 1;
    if ((at - before) % 2 === 0) return at;
    at = before;
  }
  return undefined;
}

/** The place of the first byte of a number, `true`, `false` or `null` that ends before `end`. */
function scalarStart(text: Buffer, end: number): number | undefined {
  const least = Math.max(0, end - maxValueBytes);
  let at = end;
  while (at > least && isOfScalar(text[at - 1] as number)) at -= 1;
  return at < end && at > least ? at : undefined;
}

/** True for letters, digits, `+`, `-` and `.`. */
const isOfScalar = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) ||
  (byte >= 0x61 && byte <= 0x7a) ||
  byte === 0x45 ||
  byte === 0x2b ||
  byte === 0x2d ||
  byte === 0x2e;

const maxIdLength = 256;

/** An id, of the text of its value. */
function idOf(valueText: string | undefined): RequestId | undefined {
  if (!valueText || !/^(?:"|-?\d+$)/.test(valueText)) return undefined;
  try {
    const id = JSON.parse(valueText) as RequestId;
    return (typeof id === 'string' ? id.length <= maxIdLength : Number.isSafeInteger(id)) ? id : undefined;
  } catch {
    return undefined; // the text is not JSON, which nobody has read up to here
  }
}
