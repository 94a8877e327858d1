// The values of single members, which are read without building the message: ids, tokens and short strings.
import type { RequestId } from '../faults.ts';
import { type FoundMembers, internTexts, maxScalarBytes, parseBounded, readScalar, scanMember } from '../json.ts';
import type { Message } from './message-type.ts';
import { progressMethod } from './progress-fast-path.ts';

const maxIdLength = 256;
/** Numbers with at most this many digits are exact, and are read without making a string. */
const fewDigits = 15;
const relatedTaskKey = 'io.modelcontextprotocol/related-task';

/** Values that appear in nearly every message. */
const commonStrings = internTexts(['2.0', progressMethod, 'notifications/message', 'tools/call', 'tools/list', 'ping']);

/** True if there is no such member, or if it is null. */
export function isAbsentOrNull(text: Buffer, members: FoundMembers | undefined, key: string): boolean {
  const index = members?.indexOf(key) ?? -1;
  return index < 0 || text[members?.startOf(index) as number] === 0x6e; // `n`: the scan has checked that it is `null`
}

/** Decodes an id; null for null; undefined if it is absent or not a valid id. */
export function decodeId(text: Buffer, members: FoundMembers | undefined, key: string): RequestId | null | undefined {
  const index = members?.indexOf(key) ?? -1;
  if (members === undefined || index < 0) return undefined;
  const start = members.startOf(index);
  const end = members.endOf(index);
  const first = text[start] as number;
  if (first === 0x6e) return null;
  // A character has at most six bytes (`\u0041`), so a longer slice is refused without decoding.
  if (end - start > maxIdLength * 6 + 2) return undefined;
  if (first === 0x22) {
    if (isAsciiText(text, start + 1, end - 1, latestId)) return latestId;
    const id = decodeString(text, members, key);
    if (id === undefined || id.length > maxIdLength) return undefined;
    if (id.length === end - start - 2) latestId = id; // so it has one byte for each character, and no escapes
    return id;
  }
  const small = smallInteger(text, start, end);
  if (small !== undefined) return small;
  const isNumber = first === 0x2d || (first >= 0x30 && first <= 0x39);
  const id = isNumber ? Number(text.toString('latin1', start, end)) : undefined;
  return Number.isSafeInteger(id) ? id : undefined;
}

/** The string that was last decoded as an id or token: many progress notifications in a row have the same one. */
let latestId = '';

/** True if these bytes are the given text of ASCII characters. */
export function isAsciiText(bytes: Buffer, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text.charCodeAt(i)) return false;
  return true;
}

/** The value of a short number that consists only of digits. */
function smallInteger(text: Buffer, start: number, end: number): number | undefined {
  if (end - start > fewDigits) return undefined;
  let value = 0;
  for (let i = start; i < end; i++) {
    const digit = (text[i] as number) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return value;
}

/** Decodes a short string; undefined if there is none. */
export function decodeString(text: Buffer, members: FoundMembers | undefined, key: string): string | undefined {
  const index = members?.indexOf(key) ?? -1;
  if (members === undefined || index < 0) return undefined;
  const start = members.startOf(index);
  if (text[start] !== 0x22) return undefined;
  const end = members.endOf(index) - 1;
  const known = commonStrings.find(text, start + 1, end);
  if (known !== undefined) return known;
  if (end - start > maxScalarBytes) return undefined;
  const inside = text.toString('utf8', start + 1, end);
  return inside.includes('\\') ? (parseBounded(`"${inside}"`, maxScalarBytes + 2) as string) : inside;
}

/** The progress token of a request, or of a notification of progress. */
export function decodeToken(
  text: Buffer,
  kind: Message['kind'],
  method: string | undefined,
  params: FoundMembers | undefined,
  meta: FoundMembers | undefined,
): RequestId | undefined {
  if (kind === 'request') return decodeId(text, meta, 'progressToken') ?? undefined;
  return method === progressMethod ? (decodeId(text, params, 'progressToken') ?? undefined) : undefined;
}

/** The task that a message is about, by its params or its `_meta`. */
export function decodeTaskId(
  text: Buffer,
  params: FoundMembers | undefined,
  meta: FoundMembers | undefined,
): string | undefined {
  const index = meta?.indexOf(relatedTaskKey) ?? -1;
  if (meta === undefined || index < 0) return decodeString(text, params, 'taskId');
  const related = text.subarray(meta.startOf(index), meta.endOf(index));
  const range = related.length > maxScalarBytes ? 'absent' : scanMember(related, 'taskId');
  const taskId = typeof range === 'object' ? readScalar(related, range) : undefined;
  return typeof taskId === 'string' ? taskId : undefined;
}
