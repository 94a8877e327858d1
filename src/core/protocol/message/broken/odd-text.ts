/**
 * Reads what a server has written that is no valid message (docs/decisions/0156). Servers are read generously: what an
 * official SDK would take is corrected here, and of the rest the id is searched, so that no call waits for an answer that
 * has come. The messages of clients are never corrected: a server could read them in another way than the gateway.
 */
import { isUtf8 } from 'node:buffer';
import { inOwnTurns, shareOfTurn } from '../../../util/timing/work-meter.ts';
import type { RequestId } from '../../faults.ts';
import type { Members } from '../../json.ts';
import {
  comma,
  findRange,
  openBrace,
  openBracket,
  quote,
  replaceParts,
  scalarAt,
  scanObject,
  spaceEnd,
  valueAt,
} from '../../json.ts';
import { withoutBoms } from '../../wire/lines.ts';
import { addMembersAtEnd, type FoundValues, parseId, readMembersAtStart } from './members-of-broken-text.ts';

/** A part of a text that is no valid message. */
export type OddPart =
  | {
      readonly kind: 'response';
      /** Null if the server did not know the id. */
      readonly id: RequestId | null;
    }
  | {
      readonly kind: 'request';
      /** The id as the server wrote it: it may be none that the gateway can use. */
      readonly idText: string;
    };

/** The parts of a text, and what is wrong with it, as it is said in errors and logs. */
export interface OddText {
  readonly problem: string;
  readonly parts: readonly OddPart[];
}

/** U+FFFD takes three bytes in place of one. A text may grow by this many bytes (P8). */
const maxGrowthBytes = 16 * 1024 * 1024;

/** How many messages on one line are looked for, and how many beginnings of one behind other text (P8). */
const maxParts = 32;
const maxBeginnings = 8;

/** The members that a message without `jsonrpc` may have. With others it is more likely a line of a log. */
const messageKeys: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);

/** The code of an error without a code (JSON-RPC 2.0, section 5.1). */
const internalError = -32603;

/**
 * The text without a byte order mark, and with U+FFFD in place of bytes that are not UTF-8, as the SDKs read it.
 * Undefined if it needs no such change.
 */
export function mendBytes(text: Buffer): Buffer | undefined {
  const rest = withoutBoms(text);
  if (!isUtf8(rest)) return Buffer.from(rest.toString('utf8'));
  return rest.length === text.length ? undefined : rest;
}

/** Does the same with a large text, in turns of the event loop of their own (P8). */
export async function mendBytesInTurns(marked: Buffer): Promise<Buffer | undefined> {
  const text = withoutBoms(marked);
  if (isUtf8(text)) return text.length === marked.length ? undefined : text;
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const parts: Buffer[] = [];
  let at = 0;
  let length = 0;
  await inOwnTurns(() => {
    const end = Math.min(at + shareOfTurn, text.length);
    const part = Buffer.from(decoder.decode(text.subarray(at, end), { stream: end < text.length }));
    parts.push(part);
    length += part.length;
    at = end;
    return at === text.length || length > text.length + maxGrowthBytes;
  });
  return at === text.length ? Buffer.concat(parts, length) : undefined;
}

/**
 * Corrects a message so that every SDK accepts it: removes the `null` of members that belong to another kind of message,
 * adds the id `null` where there is none, and makes `error` an object with a code and a message. A result that is null
 * becomes empty. Undefined if there is nothing to correct.
 * @param written a JSON text
 */
export function mendAnswer(written: Buffer): Buffer | undefined {
  const text = withoutForeignNulls(written);
  const members = scanObject(text);
  if (members === undefined || members === 'duplicate_key') return undefined;
  const has = (key: string): boolean => members.keys.includes(key);
  if (has('method') || (has('result') && has('error'))) return text === written ? undefined : text;
  let mended = text;
  if (!has('id') && (has('result') || has('error'))) {
    const at = mended.indexOf(openBrace) + 1;
    mended = replaceParts(mended, [{ start: at, end: at, by: '"id":null,' }]);
  }
  mended = withSoundError(mended);
  const outcome = findRange(mended, ['result']);
  if (typeof outcome === 'object' && isNull(mended, 'result'))
    mended = replaceParts(mended, [{ ...outcome, by: '{}' }]);
  return mended === written ? undefined : mended;
}

const isNotification = (text: Buffer): boolean => String(scalarAt(text, ['method'])).startsWith('notifications/');

/**
 * Some JSON libraries write each member that a message could have, and `null` where it has none: `method` in a response,
 * `result` in a request, the id in a notification, or both outcomes. Null for `params` means that there are none.
 */
function withoutForeignNulls(text: Buffer): Buffer {
  const members = scanObject(text);
  if (members === undefined || members === 'duplicate_key') return text;
  const { keys } = members;
  const isSet = (key: string): boolean => keys.includes(key) && !isNull(text, key);
  const foreign = isSet('method')
    ? ['params', 'error', 'result', ...(isNotification(text) ? ['id'] : [])]
    : ['method', 'params', ...(isSet('result') ? ['error'] : isSet('error') ? ['result'] : [])];
  const key = foreign.find((name) => keys.includes(name) && isNull(text, name));
  // Without one of them, the ranges of the others are new. There are five at most.
  return key === undefined || keys.length === 1
    ? text
    : withoutForeignNulls(withoutMember(text, members, keys.indexOf(key)));
}

/** Removes a member, which is not the only one, with its comma. */
function withoutMember(text: Buffer, { ends }: Members, index: number): Buffer {
  const end = ends[index] as number;
  const [start, to] =
    index > 0 ? [ends[index - 1] as number, end] : [text.indexOf(openBrace) + 1, text.indexOf(comma, end) + 1];
  return replaceParts(text, [{ start, end: to, by: '' }]);
}

const isNull = (text: Buffer, key: string): boolean => scalarAt(text, [key]) === null;

/** True if the `error` of an error response has a code and a message, as JSON-RPC demands. */
export const hasSoundError = (text: Buffer): boolean =>
  Number.isInteger(scalarAt(text, ['error', 'code'])) && valueAt(text, ['error', 'message'])?.[0] === quote;

function withSoundError(text: Buffer): Buffer {
  const range = findRange(text, ['error']);
  if (typeof range !== 'object' || isNull(text, 'error') || hasSoundError(text)) return text;
  const whole = scalarAt(text, ['error']);
  const code = scalarAt(text, ['error', 'code']);
  const message = scalarAt(text, ['error', 'message']);
  const data = valueAt(text, ['error', 'data']);
  const known = [message, whole, code].find((value) => typeof value === 'string');
  const members = [
    `"code":${Number.isInteger(code) ? code : internalError}`,
    `"message":${JSON.stringify(known ?? 'The MCP server gave no message with this error.')}`,
    ...(data === undefined ? [] : [`"data":${data}`]),
  ];
  return replaceParts(text, [{ ...range, by: `{${members.join()}}` }]);
}

/**
 * Finds the requests and answers in a text that is no valid JSON, or has a key twice.
 * @param isDuplicate true if the text is JSON in which a key stands twice
 */
export function readOddText(text: Buffer, isDuplicate: boolean): OddText {
  const start = spaceEnd(text, 0);
  const first = text[start];
  if (first === openBrace || first === openBracket) {
    const read = readParts(text, first === openBracket ? spaceEnd(text, start + 1) : start);
    const isFollowed = read.isWhole && first === openBrace && !isDuplicate;
    if (read.parts.length > 0)
      return {
        problem: isDuplicate ? 'a key twice' : isFollowed ? 'text after the JSON' : 'not JSON',
        parts: read.parts,
      };
  }
  return { problem: 'text before the JSON', parts: readBehindText(text) };
}

/** Reads the message of a text that is JSON, but no JSON-RPC. */
export function readOddMessage(text: Buffer): OddPart | undefined {
  const read = readMembersAtStart(text);
  if (read === undefined) return undefined;
  if (read.end === undefined) addMembersAtEnd(text, read.values);
  return partOf(read.values);
}

/** Reads one object after the other. `isWhole`: the first one is complete. */
function readParts(text: Buffer, start: number): { parts: OddPart[]; isWhole: boolean } {
  const parts: OddPart[] = [];
  let isWhole = false;
  for (let at = start, count = 0; count < maxParts && text[at] === openBrace; count += 1) {
    const rest = text.subarray(at);
    const read = readMembersAtStart(rest);
    if (read === undefined) break;
    const { values, end } = read;
    isWhole ||= count === 0 && end !== undefined;
    if (end === undefined) addMembersAtEnd(rest, values);
    const part = partOf(values);
    if (part !== undefined) parts.push(part);
    if (end === undefined) break;
    at = spaceEnd(text, at + end);
    if (text[at] === comma) at = spaceEnd(text, at + 1);
  }
  return { parts, isWhole };
}

/**
 * Finds an answer behind other text on its line, such as a log line without a line end. Requests are not looked for: a
 * server that logs what it has received would be answered.
 */
function readBehindText(text: Buffer): OddPart[] {
  let at = text.indexOf(beginning);
  for (let count = 0; at >= 0 && count < maxBeginnings; count += 1) {
    const rest = text.subarray(at);
    const read = readMembersAtStart(rest);
    if (read !== undefined) {
      const { values, end } = read;
      if (end === undefined) addMembersAtEnd(rest, values);
      const part = values.get('jsonrpc') === '"2.0"' ? partOf(values) : undefined;
      if (part?.kind === 'response') return [part];
    }
    at = text.indexOf(beginning, at + 1);
  }
  return [];
}

const beginning = Buffer.from('{"');

/** What the members of an object belong to; undefined if they are no answer and no request. */
function partOf(values: FoundValues): OddPart | undefined {
  const hasVersion = values.has('jsonrpc');
  if (!hasVersion && [...values.keys()].some((key) => !messageKeys.has(key))) return undefined;
  const idText = values.get('id');
  const hasOutcome = values.has('result') || values.has('error');
  if (!hasOutcome && values.get('method')?.startsWith('"'))
    return idText === undefined || idText === '' ? undefined : { kind: 'request', idText };
  if (!hasOutcome && (!hasVersion || idText === undefined)) return undefined;
  if (hasOutcome && (idText === undefined || idText === 'null')) return { kind: 'response', id: null };
  const id = parseId(idText);
  return id === undefined ? undefined : { kind: 'response', id };
}
