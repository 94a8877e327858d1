// src/core/protocol/message: JSON-RPC messages: reading them from text, and changing single members of their text.
import { detachedCopy } from '../../util/detached-bytes.ts';
import { hasRoomFor, inOwnTurns, shareOfTurn, unitsOfText } from '../../util/timing/work-meter.ts';
import { faultMessage, type Reason, type RequestId } from '../faults.ts';
import type { ByteRange } from '../json.ts';
import {
  copyOf,
  defaultLimits,
  type FoundMembers,
  hasMember,
  internTexts,
  type Members,
  type MessagesOutcome,
  maxScalarBytes,
  memberIndex,
  parseBounded,
  readScalar,
  replaceParts,
  type Scalar,
  type ScanLimits,
  type Scanned,
  SteppedScan,
  scanMember,
  scanMessages,
} from '../json.ts';
import {
  hasSoundError,
  mendAnswer,
  mendBytes,
  mendBytesInTurns,
  type OddPart,
  readOddMessage,
  readOddText,
} from './broken/odd-text.ts';
import { createStandIn } from './broken/stand-in.ts';
import { rescanMembers } from './member-ranges.ts';
import type { MemberRanges, Message, MessageLevel, StandIn } from './message-type.ts';
import { ProgressFastPath, progressMethod } from './progress-fast-path.ts';

export type { BadAnswer, MemberRanges, Message, MessageLevel, StandIn } from './message-type.ts';

/** The range of a member's value in the message's text; undefined if there is no such member. */
export function memberRange(message: Message, level: MessageLevel, key: string): ByteRange | undefined {
  const ranges = message.memberRanges;
  const members = ranges[level];
  const index = memberIndex(members, key);
  if (members === undefined || index < 0) return undefined;
  return {
    start: (members.starts[index] as number) - ranges.start,
    end: (members.ends[index] as number) - ranges.start,
  };
}

/** A member's value; undefined if there is no such member, or if `readScalar` does not build it. */
export function memberValue(message: Message, level: MessageLevel, key: string): Scalar | undefined {
  const range = memberRange(message, level, key);
  return range === undefined ? undefined : readScalar(message.text, range);
}

/** A message, or the reason of its refusal and the id for the error response. */
export type ReadMessage =
  | { readonly ok: true; readonly message: Message }
  | {
      readonly ok: false;
      readonly reason: Reason;
      readonly id: RequestId | null;
      /** The refused text and the problem, if it is a server's; see `readServerTexts`. */
      readonly odd?: { readonly text: Buffer; readonly problem: string };
    };

/** A parsed body: one message, or those of a batch in order. */
export type ReadBody =
  | { readonly ok: true; readonly batch: boolean; readonly messages: readonly ReadMessage[] }
  | { readonly ok: false; readonly reason: Reason };

const maxIdLength = 256;
/** Numbers with at most this many digits are exact, and are read without making a string. */
const fewDigits = 15;
/** The key of `_meta` that names the revision of a request of the modern era (2026-07-28, basic, "_meta"). */
export const protocolVersionKey = 'io.modelcontextprotocol/protocolVersion';
const relatedTaskKey = 'io.modelcontextprotocol/related-task';

/**
 * How deeply a server's message may be nested. No server needs more, and clients in some languages crash when they
 * build a deeper message.
 */
export const maxServerDepth = 1_000;

/**
 * Reads one text as a JSON-RPC message or batch. It throws for no fault of a peer.
 * @param maxDepth how deeply the JSON may be nested
 */
export function readBody(text: Buffer, maxDepth: number, limits = defaultLimits): ReadBody {
  // The fast path knows messages of servers, whose keys are not checked for case.
  const progress = limits.foldsKeys ? undefined : progressFastPath.read(text, maxDepth);
  if (progress !== undefined) return { ok: true, batch: false, messages: [{ ok: true, message: progress }] };
  const messages: ReadMessage[] = [];
  const isServers = limits === serverLimits;
  const outcome = scanMessages(
    text,
    maxDepth,
    (scanned) => messages.push(readMessage(text, scanned, isServers)),
    limits,
  );
  return createBody(text, outcome, messages, limits);
}

/**
 * Reads a text as `readBody` does, in turns of the event loop of their own, and a large one step by step (P8). It
 * resolves in the turn of the last step.
 */
export async function readBodyInTurns(text: Buffer, maxDepth: number, limits = defaultLimits): Promise<ReadBody> {
  if (!isLargeText(text)) {
    let small: ReadBody | undefined;
    await inOwnTurns(() => {
      small = readBody(text, maxDepth, limits);
      return true;
    }, unitsOf(text));
    return small as ReadBody;
  }
  const messages: ReadMessage[] = [];
  const isServers = limits === serverLimits;
  const read = (scanned: Scanned): unknown => messages.push(readMessage(text, scanned, isServers));
  const scan = new SteppedScan(text, maxDepth, read, limits);
  let body: ReadBody | undefined;
  await inOwnTurns(() => {
    const outcome = scan.step();
    if (outcome !== undefined) body = createBody(text, outcome, messages, limits);
    return outcome !== undefined;
  });
  return body as ReadBody;
}

/** Reads a text as `readBody` does. Returns a promise if this turn has no room for it: it is then read in later turns. */
export const readBodyWhenRoom = (text: Buffer, maxDepth: number): ReadBody | Promise<ReadBody> =>
  hasRoomForText(text) ? readBody(text, maxDepth) : readBodyInTurns(text, maxDepth);

/**
 * The units of a progress notification of the form that was learned, besides its bytes. It takes 3 microseconds on its
 * way to a client, and 8 if only its beginning is of that form.
 */
const unitsOfProgress = unitsOfText / 4;

/** The work of reading a text; see the work meter. */
const unitsOf = (text: Buffer): number =>
  text.length + (progressFastPath.pattern?.isBeginningOf(text) === true ? unitsOfProgress : unitsOfText);

/** True if a text needs turns of its own. */
export const isLargeText = (text: Buffer): boolean => unitsOf(text) >= shareOfTurn;

/** True if this turn has room for reading a text, which then counts as read. */
export const hasRoomForText = (text: Buffer): boolean => hasRoomFor(unitsOf(text));

/**
 * The texts in portions, of which each fits into the share of a turn. A large text is a portion of its own. Most texts
 * are one portion.
 */
export function portionsOf<T>(items: readonly T[], textOf: (item: T) => Buffer): (readonly T[])[] {
  const portions: (readonly T[])[] = [];
  let from = 0;
  let units = 0;
  for (let index = 0; index < items.length; index += 1) {
    const added = unitsOf(textOf(items[index] as T));
    units += added;
    if (units < shareOfTurn || index === from) continue;
    portions.push(items.slice(from, index));
    from = index;
    units = added;
  }
  portions.push(from === 0 ? items : items.slice(from));
  return portions;
}

/** What a server has sent: its messages in order, and the texts of which something is no message. */
export interface ServerMessages {
  readonly messages: readonly Message[];
  /** The first texts of which something is no message, at most `maxNoiseTexts`. */
  readonly noise: readonly Buffer[];
  /** The number of further such texts, which are only counted. */
  readonly unkeptNoise?: number;
}

/**
 * How many texts of noise one read keeps (P8). A chunk of 64 KiB can hold 32,768 of them, and each is an event of the
 * session. A person who reads the log needs the first ones and their number.
 */
export const maxNoiseTexts = 16;

/** A receiver of noise; see `BackendEvents.onNoise`. */
interface NoiseReceiver {
  onNoise(text: Buffer, more?: number): void;
}

/**
 * Reports the noise of one or more reads: the first `maxNoiseTexts` texts. The last of them carries the number of the
 * others.
 */
export function reportNoise(receiver: NoiseReceiver, reads: readonly Omit<ServerMessages, 'messages'>[]): void {
  let last: Buffer | undefined;
  let kept = 0;
  let more = 0;
  for (const { noise, unkeptNoise = 0 } of reads) {
    more += unkeptNoise;
    for (const text of noise) {
      kept += 1;
      if (kept > maxNoiseTexts) more += 1;
      else {
        if (last !== undefined) receiver.onNoise(last);
        last = text;
      }
    }
  }
  if (last === undefined) return;
  if (more > 0) receiver.onNoise(last, more);
  else receiver.onNoise(last);
}

/**
 * The limits of the texts of servers. Their messages are read generously: what cannot be passed on as it is, is corrected,
 * or an error stands in for it (docs/decisions/0156).
 */
const serverLimits: ScanLimits = { ...defaultLimits };

/**
 * Reads texts of a server. An array is split into its messages. Only 2025-03-26 has batches, but dropping one in any
 * revision would leave its requests without an answer. A text that is no valid message is corrected, or an error stands
 * in for the answer that it was to be (`Message.standIn`).
 * @returns a promise if this turn of the event loop has no room for the texts: they are then read in turns of their own
 *   (P8). Whoever reads many texts reads them in portions (`portionsOf`), so that they are delivered in several turns
 */
export function readServerTexts(texts: readonly Buffer[]): ServerMessages | Promise<ServerMessages> {
  let units = 0;
  for (const text of texts) units += unitsOf(text);
  return hasRoomFor(units) ? readSmallTexts(texts) : readInTurns(texts);
}

/** Reads texts of a server at once. Only tests, and whoever has asked the work meter, may call this. */
export function readSmallTexts(texts: readonly Buffer[], found = new FoundMessages()): ServerMessages {
  for (const text of texts) {
    const progress = progressFastPath.read(text, maxServerDepth);
    if (progress !== undefined) {
      found.messages.push(progress);
      continue;
    }
    const body = readBody(text, maxServerDepth, serverLimits);
    const mended = body.ok ? undefined : mendBytes(text);
    if (mended === undefined) found.add(text, body);
    else found.add(mended, readBody(mended, maxServerDepth, serverLimits));
  }
  return found;
}

/** Reads texts as `readServerTexts` does, but keeps the messages of each text apart. */
export function readTextsApart(texts: readonly Buffer[]): ServerMessages[] | Promise<ServerMessages[]> {
  let units = 0;
  for (const text of texts) units += unitsOf(text);
  if (hasRoomFor(units)) return texts.map((text) => readSmallTexts([text]));
  const each = texts.map((text) => ({ text, found: new FoundMessages() }));
  return readEach(each).then(() => each.map(({ found }) => found));
}

async function readInTurns(texts: readonly Buffer[]): Promise<ServerMessages> {
  const found = new FoundMessages();
  await readEach(texts.map((text) => ({ text, found })));
  return found;
}

/** Reads texts in turns of their own. */
async function readEach(each: readonly { readonly text: Buffer; readonly found: FoundMessages }[]): Promise<void> {
  for (const portion of portionsOf(each, ({ text }) => text)) {
    const [first] = portion;
    if (first !== undefined && isLargeText(first.text)) await readLarge(first.text, first.found);
    else
      await inOwnTurns(() => {
        for (const { text, found } of portion) readSmallTexts([text], found);
        return true;
      });
  }
}

async function readLarge(text: Buffer, found: FoundMessages): Promise<void> {
  const body = await readBodyInTurns(text, maxServerDepth, serverLimits);
  const mended = body.ok ? undefined : await mendBytesInTurns(text);
  if (mended === undefined) found.add(text, body);
  else found.add(mended, await readBodyInTurns(mended, maxServerDepth, serverLimits));
}

/** The messages in texts of a server. */
class FoundMessages implements ServerMessages {
  readonly messages: Message[] = [];
  readonly noise: Buffer[] = [];
  unkeptNoise = 0;

  add(text: Buffer, body: ReadBody): void {
    let isNoise = body.ok ? body.messages.length === 0 : !this.#addParts(text, body.reason);
    if (body.ok)
      for (const read of body.messages) {
        if (!read.ok) isNoise = !this.#addOdd(read) || isNoise;
        else this.messages.push(read.message.isError ? withSoundError(read.message) : read.message);
      }
    if (!isNoise) return;
    if (this.noise.length < maxNoiseTexts) this.noise.push(text);
    else this.unkeptNoise += 1;
  }

  /** Adds stand-ins for the messages in a text that is no JSON, or has a key twice. False if there are none. */
  #addParts(text: Buffer, reason: Reason): boolean {
    if (reason !== 'not_json' && reason !== 'duplicate_key') return false;
    const { problem, parts } = readOddText(text, reason === 'duplicate_key');
    for (const part of parts) this.messages.push(standInFor(part, problem, text));
    return parts.length > 0;
  }

  /** Adds a corrected message, or a stand-in. False if the text is nothing of the kind. */
  #addOdd({ odd }: Extract<ReadMessage, { ok: false }>): boolean {
    if (odd === undefined) return false;
    const { text, problem } = odd;
    const mended = mendAnswer(text);
    const body = mended && readBody(mended, maxServerDepth, serverLimits);
    const [read] = body?.ok ? body.messages : [];
    if (read?.ok) this.messages.push(read.message);
    const part = read?.ok ? undefined : readOddMessage(text);
    const rest = read?.ok === false ? (read.odd?.problem ?? problem) : problem;
    if (part !== undefined) this.messages.push(standInFor(part, rest, text));
    return read?.ok === true || part !== undefined;
  }
}

/**
 * A larger error is replaced (P8). Errors are read again at many places, for their code, message and data. Their walks add
 * up: an error of 8 MiB takes a tenth of a second.
 */
const maxErrorBytes = 512 * 1024;

function withSoundError(message: Message): Message {
  if (message.text.length > maxErrorBytes)
    return readStandIn(faultMessage('response_too_complex', message.id ?? null), { reason: 'response_too_complex' });
  if (hasSoundError(message.text)) return message;
  const mended = mendAnswer(message.text);
  return mended === undefined ? message : changedMessage(message, mended, {});
}

/** The data of the fault for a call whose answer has a stand-in. */
export function faultData(standIn: StandIn): { problem: string } | { retryAfterS: number } | undefined {
  if (standIn.reason === 'bad_response') return { problem: standIn.problem };
  return standIn.reason === 'server_overloaded' ? { retryAfterS: standIn.retryAfterS } : undefined;
}

/** How much of an odd text is kept for the log. */
const maxWrittenBytes = 2_048;

function standInFor(part: OddPart, problem: string, text: Buffer): Message {
  const written = Buffer.from(text.subarray(0, maxWrittenBytes));
  if (part.kind === 'response') return createBadResponse(part.id, problem, written);
  const error = { code: -32600, message: `Invalid request: ${problem}.` };
  const refusal = Buffer.from(`{"jsonrpc":"2.0","id":${part.idText},"error":${JSON.stringify(error)}}`);
  return readStandIn('{"jsonrpc":"2.0","id":0,"method":"invalid"}', { reason: 'not_json_rpc', written, refusal });
}

/**
 * Creates the error that stands in for an answer of a server.
 * @param id null if the answer does not name its request
 * @param written the beginning of the answer, for the log
 */
export const createBadResponse = (id: RequestId | null, problem: string, written: Buffer): Message =>
  readStandIn(faultMessage('bad_response', id, { problem }), { reason: 'bad_response', problem, written });

/**
 * Creates the error for a request that the server refused with the status 429 or 503.
 * @param retryAfterS the time after which the server wants to be asked again
 */
export const createOverloaded = (id: RequestId, retryAfterS: number): Message =>
  readStandIn(faultMessage('server_overloaded', id, { retryAfterS }), { reason: 'server_overloaded', retryAfterS });

/** Creates the body of a text from the result of its scan. */
function createBody(
  text: Buffer,
  scan: MessagesOutcome,
  messages: readonly ReadMessage[],
  limits: ScanLimits,
): ReadBody {
  if (scan.ok) return { ok: true, batch: scan.batch, messages };
  const standIn = limits.foldsKeys || !boundFaults.has(scan.fault) ? undefined : createStandIn(text);
  if (standIn === undefined) return { ok: false, reason: scan.fault };
  // So no call waits in vain for its answer.
  const message = readStandIn(standIn, { reason: 'response_too_complex' });
  return { ok: true, batch: false, messages: [{ ok: true, message }] };
}

/** The reasons for refusing a message that is valid JSON but exceeds a limit. */
const boundFaults: ReadonlySet<Reason> = new Set<Reason>([
  'too_deep',
  'too_many_members',
  'too_many_values',
  'key_too_long',
]);

/** Reads a message that the gateway made in place of a server's. */
function readStandIn(text: string, standIn: StandIn): Message {
  let read: ReadMessage | undefined;
  const whole = Buffer.from(text);
  scanMessages(whole, maxServerDepth, (scanned) => {
    read = readMessage(whole, scanned, false, standIn);
  });
  if (read?.ok !== true) throw new Error('the stand-in is no message');
  return read.message;
}

/**
 * Reads a text as one message; undefined if it is not a message, or if it is an array.
 * @param maxDepth any depth by default, for texts that were read before
 */
export const readOne = (text: Buffer, maxDepth = Number.POSITIVE_INFINITY): Message | undefined =>
  oneOf(readBody(text, maxDepth));

/** The message of a body; undefined if it is not one message. */
export function oneOf(body: ReadBody): Message | undefined {
  const [read] = body.ok && !body.batch ? body.messages : [];
  return read?.ok ? read.message : undefined;
}

/** Reads a message that the gateway made or changed itself. It throws if the text is not a message. */
export function readGatewayMessage(text: Buffer): Message {
  const message = readOne(text);
  if (message === undefined) throw new Error('the text is no message');
  return message;
}

/** Creates a message of the gateway itself. */
export const createMessage = (members: { readonly [key: string]: unknown }): Message =>
  readGatewayMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...members })));

/**
 * Creates a notification that cancels a request (2025-11-25, basic/utilities/cancellation).
 * @param reason a sentence for whoever reads the receiver's log
 */
export const cancelled = (requestId: RequestId, reason: string): Message =>
  createMessage({ method: 'notifications/cancelled', params: { requestId, reason } });

/** Returns the responses among messages. */
export const responsesIn = (messages: readonly Message[]): Message[] =>
  messages.filter(({ kind }) => kind === 'response');

/** Members that differ between a message and the one that it was made from. */
export type ChangedMembers = Partial<Pick<Message, 'id' | 'progressToken' | 'cancels' | 'asksForTask' | 'isModern'>>;

/** A message that the gateway made from another one by changing single members in its text. */
export function changedMessage(origin: Message, text: Buffer, changes: ChangedMembers): Message {
  return new ChangedMessage(origin, text, changes);
}

/** The same request or response under another id. It throws if the message has no id. */
export function withId(message: Message, id: RequestId): Message {
  const range = memberRange(message, 'message', 'id');
  if (range === undefined) throw new Error('the message has no id');
  const by = JSON.stringify(id);
  const text = replaceParts(message.text, [{ ...range, by }]);
  const ranges = shiftedRanges(message.memberRanges, range.end, text.length - message.text.length);
  return new ChangedMessage(message, text, { id }, ranges);
}

/** The ranges after a value that ends at `from` in the message's text has become longer by `by` bytes. */
function shiftedRanges({ start, message, params, meta }: MemberRanges, from: number, by: number): MemberRanges {
  const shifted = (position: number): number => position - start + (position - start >= from ? by : 0);
  const shiftedMembers = (members: Members | undefined): Members | undefined =>
    members && { keys: members.keys, starts: members.starts.map(shifted), ends: members.ends.map(shifted) };
  return { start: 0, message: shiftedMembers(message), params: shiftedMembers(params), meta: shiftedMembers(meta) };
}

/** The same message, with a text that shares no memory with a larger buffer, so that it can be kept. */
export const detachedMessage = (message: Message): Message => changedMessage(message, detachedCopy(message.text), {});

class ChangedMessage implements Message {
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
  readonly reportsToolError: boolean;
  readonly standIn: StandIn | undefined;
  #ranges: MemberRanges | undefined;

  /** @param ranges if they are known */
  constructor(origin: Message, text: Buffer, changes: ChangedMembers, ranges?: MemberRanges) {
    this.#ranges = ranges;
    this.kind = origin.kind;
    this.text = text;
    this.id = 'id' in changes ? changes.id : origin.id;
    this.method = origin.method;
    this.progressToken = changes.progressToken ?? origin.progressToken;
    this.cancels = changes.cancels ?? origin.cancels;
    this.taskId = origin.taskId;
    this.asksForTask = changes.asksForTask ?? origin.asksForTask;
    this.isModern = changes.isModern ?? origin.isModern;
    this.isError = origin.isError;
    this.reportsToolError = origin.reportsToolError;
    this.standIn = origin.standIn;
  }

  get memberRanges(): MemberRanges {
    this.#ranges ??= rescanMembers(this.text);
    return this.#ranges;
  }
}

const progressFastPath = new ProgressFastPath();

/** The id of a request. */
export const requestId = (request: Message): RequestId => request.id as RequestId;

/** Values that appear in nearly every message. */
const commonStrings = internTexts(['2.0', progressMethod, 'notifications/message', 'tools/call', 'tools/list', 'ping']);

/** A message that was read from its text. */
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
  readonly reportsToolError: boolean;
  readonly memberRanges: MemberRanges;

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
    this.reportsToolError = scanned.reportsToolError;
    this.memberRanges = copyOf(scanned);
  }
}

/** A message that stands in for one that could not be read. */
class StandInMessage extends ScannedMessage {
  readonly standIn: StandIn;

  constructor(standIn: StandIn, ...parts: ConstructorParameters<typeof ScannedMessage>) {
    super(...parts);
    this.standIn = standIn;
  }
}

/** @param isServers true for a server's message: what is refused is then described */
function readMessage(whole: Buffer, scanned: Scanned, isServers: boolean, standIn?: StandIn): ReadMessage {
  const { message, params } = scanned;
  const hasId = hasMember(message, 'id');
  const id = hasId ? decodeId(whole, message, 'id') : undefined;
  const refuse = (reason: Reason, problem?: string): ReadMessage => {
    const refused = { ok: false, reason, id: id ?? null } as const;
    if (!isServers || message === undefined) return refused;
    return { ...refused, odd: { text: whole.subarray(scanned.start, scanned.end), problem: problem ?? shapeProblem } };
  };

  if (decodeString(whole, message, 'jsonrpc') !== '2.0')
    return refuse('not_json_rpc', hasMember(message, 'jsonrpc') ? 'jsonrpc is not "2.0"' : 'no jsonrpc');
  const hasMethod = hasMember(message, 'method');
  const method = decodeString(whole, message, 'method');
  const outcomes = Number(hasMember(message, 'result')) + Number(hasMember(message, 'error'));
  if (hasMethod ? method === undefined || outcomes > 0 : outcomes !== 1 || !hasId)
    return refuse('not_json_rpc', hasMethod ? undefined : outcomesProblem[outcomes]);
  // Null stands for no params. Official SDKs refuse it, so it is removed from a server's message, as other nulls are.
  const hasOddParams = params === undefined && hasMember(message, 'params');
  if (hasOddParams && (isServers || !isAbsentOrNull(whole, message, 'params'))) return refuse('not_json_rpc');
  // JSON-RPC 2.0, section 5.1: an error is an object. Null is not an error, and there is no result either.
  if (!hasMethod && hasMember(message, 'error') && isAbsentOrNull(whole, message, 'error'))
    return refuse('not_json_rpc', 'the error is null');
  if (
    isServers &&
    hasMember(message, 'result') &&
    whole[message?.startOf(message.indexOf('result')) as number] !== 0x7b
  )
    return refuse('not_json_rpc', 'the result is not an object');
  if (hasId && (id === undefined || (id === null && hasMethod))) return refuse('bad_id', 'the id is not allowed');

  const kind = !hasMethod ? 'response' : hasId ? 'request' : 'notification';
  const read =
    standIn === undefined
      ? new ScannedMessage(whole, scanned, kind, id, method)
      : new StandInMessage(standIn, whole, scanned, kind, id, method);
  if (method === progressMethod) progressFastPath.note(whole, scanned, read.progressToken);
  return { ok: true, message: read };
}

/** What is said of a message of another shape than any of JSON-RPC. */
const shapeProblem = 'neither a request, a notification nor a response';
/** What is said of a response with so many of the members `result` and `error`. */
const outcomesProblem = ['neither result nor error', 'no id', 'both result and error'];

function isAbsentOrNull(text: Buffer, members: FoundMembers | undefined, key: string): boolean {
  const index = members?.indexOf(key) ?? -1;
  return index < 0 || text[members?.startOf(index) as number] === 0x6e; // `n`: the scan has checked that it is `null`
}

/** Decodes an id; null for null; undefined if it is absent or not a valid id. */
function decodeId(text: Buffer, members: FoundMembers | undefined, key: string): RequestId | null | undefined {
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
  return inside.includes('\\') ? (parseBounded(`"${inside}"`, maxScalarBytes + 2) as string) : inside;
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
  const range = related.length > maxScalarBytes ? 'absent' : scanMember(related, 'taskId');
  const taskId = typeof range === 'object' ? readScalar(related, range) : undefined;
  return typeof taskId === 'string' ? taskId : undefined;
}
