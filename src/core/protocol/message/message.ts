// src/core/protocol/message: JSON-RPC messages: reading them from text, and changing single members of their text.
import { hasRoomFor, inOwnTurns, shareOfTurn, unitsOfText } from '../../util/timing/work-meter.ts';
import { faultMessage, type Reason, type RequestId } from '../faults.ts';
import type { ByteRange } from '../json.ts';
import {
  copyOf,
  defaultLimits,
  hasMember,
  type MessagesOutcome,
  memberIndex,
  readScalar,
  type Scalar,
  type ScanLimits,
  type Scanned,
  SteppedScan,
  scanMessages,
} from '../json.ts';
import { createStandIn } from './broken/stand-in.ts';
import { decodeId, decodeString, decodeTaskId, decodeToken, isAbsentOrNull } from './decoded-members.ts';
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

/** The key of `_meta` that names the revision of a request of the modern era (2026-07-28, basic, "_meta"). */
export const protocolVersionKey = 'io.modelcontextprotocol/protocolVersion';

/**
 * How deeply a server's message may be nested. No server needs more, and clients in some languages crash when they
 * build a deeper message.
 */
export const maxServerDepth = 1_000;

/**
 * The limits of the texts of servers. Their messages are read generously: what cannot be passed on as it is, is corrected,
 * or an error stands in for it (docs/decisions/0156).
 */
export const serverLimits: ScanLimits = { ...defaultLimits };

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
export const unitsOf = (text: Buffer): number =>
  text.length + (progressFastPath.pattern?.isBeginningOf(text) === true ? unitsOfProgress : unitsOfText);

/** True if a text needs turns of its own. */
export const isLargeText = (text: Buffer): boolean => unitsOf(text) >= shareOfTurn;

/** True if this turn has room for reading a text, which then counts as read. */
export const hasRoomForText = (text: Buffer): boolean => hasRoomFor(unitsOf(text));

/** The data of the fault for a call whose answer has a stand-in. */
export function faultData(standIn: StandIn): { problem: string } | { retryAfterS: number } | undefined {
  if (standIn.reason === 'bad_response') return { problem: standIn.problem };
  return standIn.reason === 'server_overloaded' ? { retryAfterS: standIn.retryAfterS } : undefined;
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
export function readStandIn(text: string, standIn: StandIn): Message {
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

/** The empty result, which answers a ping, for example. */
export const emptyResult = ({ id }: Pick<Message, 'id'>): Message => createMessage({ id, result: {} });

/**
 * Creates a notification that cancels a request (2025-11-25, basic/utilities/cancellation).
 * @param reason a sentence for whoever reads the receiver's log
 */
export const cancelled = (requestId: RequestId, reason: string): Message =>
  createMessage({ method: 'notifications/cancelled', params: { requestId, reason } });

/** Returns the responses among messages. */
export const responsesIn = (messages: readonly Message[]): Message[] =>
  messages.filter(({ kind }) => kind === 'response');

/** The form of progress notifications that was learned. */
export const progressFastPath = new ProgressFastPath();

/** The id of a request. */
export const requestId = (request: Message): RequestId => request.id as RequestId;

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

/** The text of a batch: an array of these texts. */
export const textOfBatch = (texts: readonly Buffer[]): Buffer =>
  Buffer.concat([
    Buffer.from('['),
    ...texts.flatMap((text, index) => (index === 0 ? [text] : [Buffer.from(','), text])),
    Buffer.from(']'),
  ]);
