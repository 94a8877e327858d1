import type { Reason, RequestId } from '../protocol/faults.ts';
import { errorCodeIn } from '../protocol/json.ts';
import { maxNameLength, readCallName } from '../protocol/message/call-name.ts';
import { readGatewayFault } from '../protocol/message/gateway-fault.ts';
import { type Message, memberRange } from '../protocol/message/message.ts';
import type { ShortenedMessage } from '../protocol/message/shortened.ts';
import { methodOf } from '../protocol/methods/methods.ts';
import { readClientName } from '../protocol/modern/envelope.ts';
import type { RequestFacts } from '../reply/reply.ts';
import {
  type CallArguments,
  type CallOrigin,
  type CallOutcome,
  type CallTelemetry,
  type EndedCall,
  maxAnswerBytes,
  maxArgumentBytes,
} from './call-events.ts';

/** The request of a call as it arrived, or the part of it that an earlier owner kept. */
export type CallRequest =
  | Message
  | { readonly method: string; readonly text: Buffer | undefined; readonly name?: string | undefined };

const ok: CallOutcome = { kind: 'ok' };
const toolError: CallOutcome = { kind: 'tool_error' };
const clientLeft: CallOutcome = { kind: 'left' };

/** Reads the name of the tool or prompt. */
const readName = (request: CallRequest): string | undefined =>
  'memberRanges' in request ? readCallName(request) : request.name;

/** Reads the arguments of a tool. The text is a copy, since the call may outlive its request. */
function readArguments(request: CallRequest | undefined): CallArguments | undefined {
  if (request === undefined || !('memberRanges' in request) || methodOf(request.method).names !== 'tool')
    return undefined;
  const range = memberRange(request, 'params', 'arguments');
  if (range === undefined) return undefined;
  const bytes = range.end - range.start;
  const isShort = bytes <= maxArgumentBytes;
  return { bytes, text: isShort ? Buffer.from(request.text.subarray(range.start, range.end)) : undefined };
}

const bytesOf = (request: CallRequest | ShortenedMessage | undefined): number =>
  request !== undefined && 'fullBytes' in request ? request.fullBytes : (request?.text?.length ?? 0);

/** Measures one call, and is the event of its end. Only the first end counts. */
export class CallReport implements EndedCall {
  readonly type = 'call-ended';
  readonly origin: CallOrigin;
  readonly method: string | undefined;
  readonly name: string | undefined;
  readonly client: string | undefined;
  readonly args: CallArguments | undefined;
  readonly bytesIn: number;
  readonly requestId: string | undefined;
  answer: Buffer | undefined;
  bytesOut = 0;
  outcome: CallOutcome = clientLeft;
  durationMs = 0;
  serverMs: number | undefined;
  waitedMs = 0;
  isTask = false;
  id: RequestId | undefined;
  readonly #telemetry: CallTelemetry;
  readonly #startedAt: number;
  #sentAt: number | undefined;
  #waitedBeforeMs = 0;
  /**
   * How many things the server waits for: answers of the client, and its start. Above 0, it waits since `#waitsSince`.
   */
  #waits = 0;
  #waitsSince = 0;
  #awaitsStart = false;
  #hasEnded = false;

  /** @param facts of the HTTP request that brought the call; absent for a call that begins now */
  constructor(telemetry: CallTelemetry, origin: CallOrigin, request?: CallRequest, facts?: Partial<RequestFacts>) {
    this.#telemetry = telemetry;
    this.origin = origin;
    this.method = request?.method?.slice(0, maxNameLength);
    this.name = request !== undefined && telemetry.wantsNames ? readName(request) : undefined;
    // The client of the legacy era has named itself when its session began.
    const namesClient = telemetry.wantsNames && origin.era === 'modern' && request !== undefined;
    this.client = namesClient && 'memberRanges' in request ? readClientName(request) : undefined;
    this.args =
      this.name !== undefined && telemetry.wantsArguments?.(origin.server, this.name) === true
        ? readArguments(request)
        : undefined;
    this.bytesIn = bytesOf(request);
    this.requestId = telemetry.wantsNames ? facts?.requestId : undefined;
    this.#startedAt = facts?.receivedAt ?? performance.now();
  }

  /** The request was sent to the server, or waits for it. The first time counts. */
  sent(): void {
    if (this.#sentAt !== undefined) return;
    this.#sentAt = performance.now();
    this.#waitedBeforeMs = this.#waitedUntil(this.#sentAt);
  }

  /** The server has sent the client a request on behalf of the call. */
  waitsForClient(): void {
    if (this.#waits++ === 0) this.#waitsSince = performance.now();
  }

  /** One of the server's requests to the client has an answer, or no longer needs one. */
  settled(): void {
    if (this.#waits === 0) return; // the server has already answered the call
    this.waitedMs = this.#waitedUntil(performance.now());
    this.#waits -= 1;
    this.#waitsSince = performance.now();
  }

  /** The server is being started or restarted. Repeated calls before `started` have no effect. */
  awaitsStart(): void {
    if (this.#awaitsStart) return;
    this.#awaitsStart = true;
    this.waitsForClient();
  }

  /** The server has started: it has the request or is about to get it. */
  started(): void {
    if (!this.#awaitsStart) return;
    this.#awaitsStart = false;
    this.settled();
  }

  /** The server's response was read. The time from here to the end is the gateway's own. */
  responseReceived(): void {
    const now = performance.now();
    this.waitedMs = this.#waitedUntil(now);
    this.#waits = 0;
    if (this.#sentAt !== undefined) this.serverMs = now - this.#sentAt - (this.waitedMs - this.#waitedBeforeMs);
  }

  #waitedUntil(now: number): number {
    return this.#waits === 0 ? this.waitedMs : this.waitedMs + now - this.#waitsSince;
  }

  /** The client has the server's response, or a response made from it or in its place. */
  answered(response: Message): void {
    const { text, isError } = response;
    const bytesOut = text.length;
    const hasFailedTool = !isError && methodOf(this.method).names === 'tool' && response.reportsToolError;
    if (!isError && !hasFailedTool) return this.#end(ok, bytesOut);
    const fault = readGatewayFault(response);
    if (fault !== undefined) return this.failed(fault.reason);
    if (this.#telemetry.wantsFailedAnswers === true) this.answer = Buffer.from(text.subarray(0, maxAnswerBytes));
    if (hasFailedTool) return this.#end(toolError, bytesOut);
    this.#end({ kind: 'error', code: errorCodeIn(text) }, bytesOut);
  }

  /** The client has a task in the place of an answer of the server. */
  becameTask({ text }: Message): void {
    this.isTask = true;
    this.#end(ok, text.length);
  }

  /** @param id under which the client knows the request, if its session has failed it */
  failed(reason: Reason, id?: RequestId): void {
    this.id = id;
    this.#end({ kind: 'fault', reason });
  }

  /** The client has left. */
  left(): void {
    this.#end(clientLeft);
  }

  #end(outcome: CallOutcome, bytesOut = 0): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.outcome = outcome;
    this.bytesOut = bytesOut;
    if (this.serverMs === undefined) this.responseReceived();
    this.durationMs = performance.now() - this.#startedAt;
    this.#telemetry.emit(this);
  }
}
