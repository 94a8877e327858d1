import { inOwnTurns, isLarge } from '../../util/large-reads.ts';
import type { Reason, RequestId } from '../faults.ts';
import type { ByteRange } from '../json/byte-range.ts';
import { type FoundMembers, hasMember, memberIndex } from '../json/object-members.ts';
import { maxScalarBytes, readScalar, type Scalar } from '../json/scalar.ts';
import {
  copyOf,
  defaultLimits,
  type MessagesOutcome,
  type ScanLimits,
  type Scanned,
  SteppedScan,
  scanMember,
  scanMessages,
} from '../json/scan.ts';
import { internTexts } from '../json/short-texts.ts';
import { rescanMembers } from './member-ranges.ts';
import type { MemberRanges, Message, MessageLevel } from './message-type.ts';
import { ProgressFastPath, progressMethod } from './progress-fast-path.ts';
import { createStandIn } from './stand-in.ts';

export type { MemberRanges, Message, MessageLevel } from './message-type.ts';

/** Where a member's value lies in the message's text; undefined if there is no such member. */
export function memberRange(
  { memberRanges: places }: Message,
  level: MessageLevel,
  key: string,
): ByteRange | undefined {
  const members = places[level];
  const index = memberIndex(members, key);
  if (members === undefined || index < 0) return undefined;
  return {
    start: (members.starts[index] as number) - places.start,
    end: (members.ends[index] as number) - places.start,
  };
}

/** A member's value; undefined if there is no such member, or if it is one that `scalarIn` does not build. */
export function memberValue(message: Message, level: MessageLevel, key: string): Scalar | undefined {
  const place = memberRange(message, level, key);
  return place === undefined ? undefined : readScalar(message.text, place);
}

/** A message, or what is wrong with it and the id that its error answers. */
export type ReadMessage =
  | { readonly ok: true; readonly message: Message }
  | { readonly ok: false; readonly reason: Reason; readonly id: RequestId | null };

/** A body taken apart: one message, or those of a batch in order. */
export type ReadBody =
  | { readonly ok: true; readonly batch: boolean; readonly messages: readonly ReadMessage[] }
  | { readonly ok: false; readonly reason: Reason };

const maxIdLength = 256;
/** Numbers of so many digits are exact, and read faster than by making a string of them. */
const fewDigits = 15;
/** The key of `_meta` that says of which revision a request of the modern era is (2026-07-28, basic, "_meta"). */
export const protocolVersionKey = 'io.modelcontextprotocol/protocolVersion';
const relatedTaskKey = 'io.modelcontextprotocol/related-task';

/**
 * How deeply a message of a server may be nested. No server needs it, and whoever gets the message builds it: clients written in
 * some languages end by a deeper one.
 */
export const maxServerDepth = 1_000;

/**
 * Reads one text as a JSON-RPC message or batch. Nothing is thrown for a peer's fault.
 * @param maxDepth how deeply the JSON may be nested
 */
export function readBody(text: Buffer, maxDepth: number, limits = defaultLimits): ReadBody {
  const isKept = text.length > maxKeptBytes;
  const known = isKept ? large.get(text) : newest;
  if (known?.text === text && isWithin(known, maxDepth, limits)) return known.body;
  const body = scanBody(text, maxDepth, limits);
  const read = { text, maxDepth, limits, body };
  if (isKept) large.set(text, read);
  else if (body.ok) newest = read;
  return body;
}

/**
 * Reads the large ones among these texts step by step, in turns of the event loop of their own (P8). `readBody` knows their
 * messages then.
 * @returns undefined if there are none: nothing has to be waited for. Resolves in the turn of the last step
 */
export function readLarge(
  texts: readonly Buffer[],
  maxDepth = maxServerDepth,
  limits = defaultLimits,
): Promise<void> | undefined {
  if (!texts.some(({ length }) => isLarge(length))) return undefined;
  const readings = texts.filter(({ length }) => isLarge(length)).map((text) => stepsOf(text, maxDepth, limits));
  return inOwnTurns(() => {
    if (readings[0]?.()) readings.shift();
    return readings.length === 0;
  });
}

/** Returns a function that reads a text by one step at each call. The function returns true when all is read. */
function stepsOf(text: Buffer, maxDepth: number, limits: ScanLimits): () => boolean {
  const messages: ReadMessage[] = [];
  const scan = new SteppedScan(text, maxDepth, (scanned) => messages.push(readMessage(text, scanned)), limits);
  return () => {
    const outcome = scan.step();
    if (outcome !== undefined)
      large.set(text, { text, maxDepth, limits, body: bodyOf(text, outcome, messages, limits) });
    return outcome !== undefined;
  };
}

interface KnownBody {
  readonly text: Buffer;
  readonly maxDepth: number;
  readonly limits: ScanLimits;
  readonly body: ReadBody;
}

/** What was read last: a transport that reads a message before the session does hands over the same one. */
let newest: KnownBody | undefined;
const maxKeptBytes = 256 * 1024;

/** Larger texts are read once, as long as they are there: a line of 64 MiB takes most of 100 ms. */
const large = new WeakMap<Buffer, KnownBody>();

/** True if what was read within some limits is also within these. A refusal holds for the same limits alone. */
const isWithin = (read: KnownBody, maxDepth: number, limits: ScanLimits): boolean =>
  (read.body.ok ? read.maxDepth <= maxDepth : read.maxDepth === maxDepth) &&
  (read.limits === limits ||
    (read.body.ok &&
      read.limits.maxBatch <= limits.maxBatch &&
      read.limits.maxMembers <= limits.maxMembers &&
      (read.limits.foldsKeys || !limits.foldsKeys)));

function scanBody(text: Buffer, maxDepth: number, limits: ScanLimits): ReadBody {
  // It knows texts of servers, whose keys are not judged.
  const progress = limits.foldsKeys ? undefined : repeatedProgress.read(text, maxDepth);
  if (progress !== undefined) return { ok: true, batch: false, messages: [{ ok: true, message: progress }] };
  const messages: ReadMessage[] = [];
  const outcome = scanMessages(text, maxDepth, (scanned) => messages.push(readMessage(text, scanned)), limits);
  return bodyOf(text, outcome, messages, limits);
}

/** The body that a text is by the outcome of its scan. */
function bodyOf(text: Buffer, scan: MessagesOutcome, messages: readonly ReadMessage[], limits: ScanLimits): ReadBody {
  if (scan.ok) return { ok: true, batch: scan.batch, messages };
  const unread = limits.foldsKeys || !boundFaults.has(scan.fault) ? undefined : readUnread(text);
  return unread === undefined ? { ok: false, reason: scan.fault } : { ok: true, batch: false, messages: [unread] };
}

/** What is wrong with a message that is JSON, and larger than it may be. */
const boundFaults: ReadonlySet<Reason> = new Set<Reason>([
  'too_deep',
  'too_many_members',
  'too_many_values',
  'key_too_long',
]);

/** What stands in for a message of a server that breaks a bound, if it is known for which: no call waits for its answer in vain. */
function readUnread(text: Buffer): ReadMessage | undefined {
  const standIn = createStandIn(text);
  if (standIn === undefined) return undefined;
  let read: ReadMessage | undefined;
  const whole = Buffer.from(standIn);
  scanMessages(whole, maxServerDepth, (scanned) => {
    read = readMessage(whole, scanned, true);
  });
  return read?.ok ? read : undefined;
}

/**
 * The message that a text is; undefined if it is none, or an array.
 * @param maxDepth of a text that somebody has read before, any
 */
export function readOne(text: Buffer, maxDepth = Number.POSITIVE_INFINITY): Message | undefined {
  const body = readBody(text, maxDepth);
  const [read] = body.ok && !body.batch ? body.messages : [];
  return read?.ok ? read.message : undefined;
}

/** The response that a line of a server is; undefined if it is anything else. */
export function readResponse(line: Buffer): Message | undefined {
  const message = readOne(line, maxServerDepth);
  return message?.kind === 'response' ? message : undefined;
}

/** A message that the gateway made itself, or made of one that it has read. Throws if it is none. */
export function readGatewayMessage(text: Buffer): Message {
  const message = readOne(text);
  if (message === undefined) throw new Error('the text is no message');
  return message;
}

const repeatedProgress = new ProgressFastPath();

/** Values that are met in nearly every message. */
const commonStrings = internTexts(['2.0', progressMethod, 'notifications/message', 'tools/call', 'tools/list', 'ping']);

/** A message whose places are found when they are asked for: most messages are passed on as they are. */
class ScannedMessage implements Message {
  readonly kind: Message['kind'];
  readonly text: Buffer;
  readonly id: Message['id'];
  readonly method: string | undefined;
  readonly progressToken: RequestId | undefined;
  readonly cancels: RequestId | undefined;
  readonly taskId: string | undefined;
  readonly asksForTask: boolean;
  readonly isModern: boolean;
  readonly isError: boolean;
  readonly #scanned: Scanned;
  /** Which of all scans it was: the members are there until the next one. */
  readonly #scan: number;
  #places: MemberRanges | undefined;

  constructor(whole: Buffer, scanned: Scanned, kind: Message['kind'], id: Message['id'], method: string | undefined) {
    const { start, end, message, params, meta } = scanned;
    this.kind = kind;
    this.text = start === 0 && end === whole.length ? whole : whole.subarray(start, end);
    this.id = id;
    this.method = method;
    this.progressToken = decodeToken(whole, kind, method, params, meta);
    this.cancels =
      method === 'notifications/cancelled' ? (decodeId(whole, params, 'requestId') ?? undefined) : undefined;
    this.taskId = decodeTaskId(whole, params, meta);
    this.asksForTask = hasMember(params, 'task');
    this.isModern = meta !== undefined && meta.indexOf(protocolVersionKey) >= 0;
    this.isError = kind === 'response' && hasMember(message, 'error');
    this.#scanned = scanned;
    this.#scan = scanned.number;
  }

  get memberRanges(): MemberRanges {
    this.#places ??= this.#scanned.number === this.#scan ? copyOf(this.#scanned) : rescanMembers(this.text);
    return this.#places;
  }
}

/** What stands in for a message that was not read. */
class UnreadMessage extends ScannedMessage {
  readonly isStandIn = true;
}

function readMessage(whole: Buffer, scanned: Scanned, isUnread = false): ReadMessage {
  const { message, params } = scanned;
  const hasId = hasMember(message, 'id');
  const id = hasId ? decodeId(whole, message, 'id') : undefined;
  const refuse = (reason: Reason): ReadMessage => ({ ok: false, reason, id: id ?? null });

  if (decodeString(whole, message, 'jsonrpc') !== '2.0') return refuse('not_json_rpc');
  const hasMethod = hasMember(message, 'method');
  const method = decodeString(whole, message, 'method');
  const outcomes = Number(hasMember(message, 'result')) + Number(hasMember(message, 'error'));
  if (hasMethod ? method === undefined || outcomes > 0 : outcomes !== 1 || !hasId) return refuse('not_json_rpc');
  if (params === undefined && !isAbsentOrNull(whole, message, 'params')) return refuse('not_json_rpc');
  // JSON-RPC 2.0, section 5.1: an error is an object. Null is none, and there is no result either.
  if (!hasMethod && hasMember(message, 'error') && isAbsentOrNull(whole, message, 'error'))
    return refuse('not_json_rpc');
  if (hasId && (id === undefined || (id === null && hasMethod))) return refuse('bad_id');

  const kind = !hasMethod ? 'response' : hasId ? 'request' : 'notification';
  const read = new (isUnread ? UnreadMessage : ScannedMessage)(whole, scanned, kind, id, method);
  if (method === progressMethod) repeatedProgress.note(whole, scanned, read.progressToken);
  return { ok: true, message: read };
}

function isAbsentOrNull(text: Buffer, members: FoundMembers | undefined, key: string): boolean {
  const index = members?.indexOf(key) ?? -1;
  return index < 0 || text[members?.startOf(index) as number] === 0x6e; // `n`: the scan has checked that it is `null`
}

/** An id's value; null for null; undefined if there is none, or what no id may be. */
function decodeId(text: Buffer, members: FoundMembers | undefined, key: string): RequestId | null | undefined {
  const index = members?.indexOf(key) ?? -1;
  if (members === undefined || index < 0) return undefined;
  const start = members.startOf(index);
  const end = members.endOf(index);
  const first = text[start] as number;
  if (first === 0x6e) return null;
  // Six bytes for each character at most (`\u0041`), so a longer slice need not be decoded to be refused.
  if (end - start > maxIdLength * 6 + 2) return undefined;
  if (first === 0x22) {
    if (isAscii(text, start + 1, end - 1, newestId)) return newestId;
    const id = decodeString(text, members, key);
    if (id === undefined || id.length > maxIdLength) return undefined;
    if (id.length === end - start - 2) newestId = id; // so it has one byte for each character, and no escapes
    return id;
  }
  const small = smallInteger(text, start, end);
  if (small !== undefined) return small;
  const isNumber = first === 0x2d || (first >= 0x30 && first <= 0x39);
  const id = isNumber ? Number(text.toString('latin1', start, end)) : undefined;
  return Number.isSafeInteger(id) ? id : undefined;
}

/** The string that was decoded last as an id or token: progress comes many times for the same one. */
let newestId = '';

/** True if these bytes are a text of ASCII characters. */
function isAscii(bytes: Buffer, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text.charCodeAt(i)) return false;
  return true;
}

/** The value of a short number that is written in digits only. */
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

function decodeString(text: Buffer, members: FoundMembers | undefined, key: string): string | undefined {
  const index = members?.indexOf(key) ?? -1;
  if (members === undefined || index < 0) return undefined;
  const start = members.startOf(index);
  if (text[start] !== 0x22) return undefined;
  const end = members.endOf(index) - 1;
  const known = commonStrings.find(text, start + 1, end);
  if (known !== undefined) return known;
  if (end - start > maxScalarBytes) return undefined;
  const inside = text.toString('utf8', start + 1, end);
  return inside.includes('\\') ? (JSON.parse(`"${inside}"`) as string) : inside;
}

function decodeToken(
  text: Buffer,
  kind: Message['kind'],
  method: string | undefined,
  params: FoundMembers | undefined,
  meta: FoundMembers | undefined,
): RequestId | undefined {
  if (kind === 'request') return decodeId(text, meta, 'progressToken') ?? undefined;
  return method === progressMethod ? (decodeId(text, params, 'progressToken') ?? undefined) : undefined;
}

function decodeTaskId(
  text: Buffer,
  params: FoundMembers | undefined,
  meta: FoundMembers | undefined,
): string | undefined {
  const index = meta?.indexOf(relatedTaskKey) ?? -1;
  if (meta === undefined || index < 0) return decodeString(text, params, 'taskId');
  const related = text.subarray(meta.startOf(index), meta.endOf(index));
  const place = related.length > maxScalarBytes ? 'absent' : scanMember(related, 'taskId');
  const taskId = typeof place === 'object' ? readScalar(related, place) : undefined;
  return typeof taskId === 'string' ? taskId : undefined;
}
