import type { Reason } from '../protocol/faults.ts';
import { errorCodeIn } from '../protocol/json/splice.ts';
import { maxNameLength, readCallName } from '../protocol/message/call-name.ts';
import { readGatewayFault } from '../protocol/message/gateway-fault.ts';
import { type Message, readGatewayMessage } from '../protocol/message/message.ts';
import { isToolError } from '../protocol/message/tool-error.ts';
import type { Principal } from '../protocol/principal.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Reply } from '../reply/reply.ts';

/**
 * The outcome of a call.
 *
 * - `ok`: the server answered with a result.
 * - `tool_error`: the server answered with a result that reports a failed tool.
 * - `error`: the server answered with an error.
 * - `fault`: the gateway answered with an error of its own.
 * - `left`: the client left before there was an answer, and nobody can come back for the answer.
 */
export type CallOutcome =
  | { readonly kind: 'ok' | 'tool_error' | 'left' }
  | { readonly kind: 'error'; readonly code: number | undefined }
  | { readonly kind: 'fault'; readonly reason: Reason };

/** The sender and the server of a call. */
export interface CallOrigin {
  readonly server: string;
  readonly era: Era;
  /** The sender; undefined if the request was refused before its sender was known. */
  readonly principal: Principal | undefined;
  /**
   * The short name of the call's session in logs; undefined if the call has no session or the session was not found.
   */
  readonly session?: string | undefined;
}

/** The data of an ended call, without content. */
export interface EndedCall {
  readonly origin: CallOrigin;
  /** The called method; undefined if the request was refused unread. */
  readonly method: string | undefined;
  /**
   * The name of the tool or prompt, if the observer wants names. The URI of a resource does not count as a name, since
   * the expansion of its template may contain content.
   */
  readonly name: string | undefined;
  readonly outcome: CallOutcome;
  /** The time since the request arrived at the gateway, or at the instance that took the session over. */
  readonly durationMs: number;
  /**
   * The part of `durationMs` from sending the request to the server until its response was read, without `waitedMs`.
   * Undefined if the server did not get the request.
   */
  readonly serverMs: number | undefined;
  /**
   * The part of `durationMs` in which the server could not work on the call. The server waited for an answer of the
   * client (usually of a person or a model), or was being started.
   */
  readonly waitedMs: number;
  /** The bytes of the request; 0 if the request is not kept. */
  readonly bytesIn: number;
  /** The bytes of the server's response; 0 for a fault. */
  readonly bytesOut: number;
  /** The id of the HTTP request that contained the call, if the observer wants names and the request has an id. */
  readonly requestId: string | undefined;
}

/**
 * Receives each client call once, when the call has ended. The owner of the session reports the call, or the instance
 * that refused it. Requests of the gateway itself to servers are not calls.
 */
export interface CallObserver {
  /** True if the observer wants names of tools and prompts and request ids, which cost a search in each request. */
  readonly wantsNames: boolean;
  ended(call: EndedCall): void;
  /** Any HTTP request to a server's endpoint was answered with a fault. */
  refused(server: string, reason: Reason): void;
}

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

/** The arrival data of a request. */
export type ArrivalInfo = Pick<Reply, 'receivedAt' | 'requestId'>;

/** Measures one call and reports it to the observer. Only the first end counts. */
export class CallReport implements EndedCall {
  readonly origin: CallOrigin;
  readonly method: string | undefined;
  readonly name: string | undefined;
  readonly bytesIn: number;
  readonly requestId: string | undefined;
  bytesOut = 0;
  outcome = clientLeft;
  durationMs = 0;
  serverMs: number | undefined;
  waitedMs = 0;
  readonly #observer: CallObserver;
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

  /** @param arrival absent for a call that begins now */
  constructor(observer: CallObserver, origin: CallOrigin, request?: CallRequest, arrival?: ArrivalInfo) {
    this.#observer = observer;
    this.origin = origin;
    this.method = request?.method?.slice(0, maxNameLength);
    this.name = request !== undefined && observer.wantsNames ? readName(request) : undefined;
    this.bytesIn = request?.text?.length ?? 0;
    this.requestId = observer.wantsNames ? arrival?.requestId : undefined;
    this.#startedAt = arrival?.receivedAt ?? performance.now();
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
  answered({ text, isError }: Pick<Message, 'text' | 'isError'>): void {
    const bytesOut = text.length;
    if (!isError) return this.#end(this.method === 'tools/call' && isToolError(text) ? toolError : ok, bytesOut);
    const response = readGatewayMessage(text);
    const reason = readGatewayFault(response);
    if (reason !== undefined) return this.failed(reason);
    this.#end({ kind: 'error', code: errorCodeIn(text) }, bytesOut);
  }

  failed(reason: Reason): void {
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
    this.#observer.ended(this);
  }
}

/** Makes the function that opens a report for each call of a session; undefined without an observer. */
export function createCallReporter(
  calls: CallObserver | undefined,
  principal: Principal,
  name: Pick<CallOrigin, 'server' | 'session'>,
): ((request: CallRequest, arrival?: ArrivalInfo) => CallReport) | undefined {
  const origin: CallOrigin = { ...name, era: 'legacy', principal };
  return calls && ((request, arrival) => new CallReport(calls, origin, request, arrival));
}

/** Combines two observers, which are called in this order. Either may be absent. */
export function combineCallObservers(
  first: CallObserver | undefined,
  second: CallObserver | undefined,
): CallObserver | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  return {
    wantsNames: first.wantsNames || second.wantsNames,
    ended(call) {
      first.ended(call);
      second.ended(call);
    },
    refused(server, reason) {
      first.refused(server, reason);
      second.refused(server, reason);
    },
  };
}
