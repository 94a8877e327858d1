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
 * How a call ended. `ok`: with a result of the server. `tool_error`: with one that says that the tool failed. `error`: with its
 * error. `fault`: with an error of the gateway's own.
 * `left`: its client was gone before there was an answer, and nobody can come back for one.
 */
export type CallOutcome =
  | { readonly kind: 'ok' | 'tool_error' | 'left' }
  | { readonly kind: 'error'; readonly code: number | undefined }
  | { readonly kind: 'fault'; readonly reason: Reason };

/** Whose call it is, and at which server. */
export interface CallOrigin {
  readonly server: string;
  readonly era: Era;
  /** Undefined where the request was refused before it was known who sends it. */
  readonly principal: Principal | undefined;
  /** The short name of its session, as logs have it; undefined where it has none, or none was found. */
  readonly session?: string | undefined;
}

/** What is known of a call that has ended; no content. */
export interface EndedCall {
  readonly origin: CallOrigin;
  /** What the client calls; undefined where its request was refused unread. */
  readonly method: string | undefined;
  /**
   * Of a tool or prompt, if the observer wants names. The URI of a resource is none: with what a template puts into it, it can
   * be content.
   */
  readonly name: string | undefined;
  readonly outcome: CallOutcome;
  /** Since the gateway, or the instance that took the session over, has had the request. */
  readonly durationMs: number;
  /**
   * The part of that from the hand-over to the server until its response was read, without `waitedMs`; undefined where the
   * server was not asked.
   */
  readonly serverMs: number | undefined;
  /**
   * The part of `durationMs` in which the server could not work on it: it waited for an answer of the client (a person, or a
   * model, as a rule), or was being started.
   */
  readonly waitedMs: number;
  /** Of the request as it came; 0 where it is not kept. */
  readonly bytesIn: number;
  /** Of the server's response; 0 for a fault. */
  readonly bytesOut: number;
  /** Of the HTTP request that brought it, if the observer wants names and there is one. */
  readonly requestId: string | undefined;
}

/**
 * Is told of each call of a client when it has ended, once: by the owner of its session, or by the instance that refused it.
 * Requests that the gateway itself makes of servers are no calls.
 */
export interface CallObserver {
  /** True to be told the names of tools and prompts, and ids of requests, which have to be looked for in each. */
  readonly wantsNames: boolean;
  ended(call: EndedCall): void;
  /** An HTTP request to a server's endpoint, whatever it wanted, is answered with a fault. */
  refused(server: string, reason: Reason): void;
}

/** A request as it came, or what an earlier owner left of it. */
export type CallRequest =
  | Message
  | { readonly method: string; readonly text: Buffer | undefined; readonly name?: string | undefined };

const ok: CallOutcome = { kind: 'ok' };
const toolError: CallOutcome = { kind: 'tool_error' };
const left: CallOutcome = { kind: 'left' };

/** The tool or prompt that it names. */
const nameOf = (request: CallRequest): string | undefined =>
  'memberRanges' in request ? readCallName(request) : request.name;

/** How a request came. */
export type ArrivalInfo = Pick<Reply, 'receivedAt' | 'requestId'>;

/** One call that somebody wants to be told of. Only the first end counts. */
export class CallReport implements EndedCall {
  readonly origin: CallOrigin;
  readonly method: string | undefined;
  readonly name: string | undefined;
  readonly bytesIn: number;
  readonly requestId: string | undefined;
  bytesOut = 0;
  outcome = left;
  durationMs = 0;
  serverMs: number | undefined;
  waitedMs = 0;
  readonly #observer: CallObserver;
  readonly #startedAt: number;
  #sentAt: number | undefined;
  #waitedBeforeMs = 0;
  /** Why the server cannot go on: questions without an answer, and its start. It waits since `#waitsSince` if there are any. */
  #waits = 0;
  #waitsSince = 0;
  #awaitsStart = false;
  #hasEnded = false;

  /** @param came absent for one that begins now */
  constructor(observer: CallObserver, origin: CallOrigin, request?: CallRequest, came?: ArrivalInfo) {
    this.#observer = observer;
    this.origin = origin;
    this.method = request?.method?.slice(0, maxNameLength);
    this.name = request !== undefined && observer.wantsNames ? nameOf(request) : undefined;
    this.bytesIn = request?.text?.length ?? 0;
    this.requestId = observer.wantsNames ? came?.requestId : undefined;
    this.#startedAt = came?.receivedAt ?? performance.now();
  }

  /** The request was handed over to the server, or waits for it; the first time counts. */
  sent(): void {
    if (this.#sentAt !== undefined) return;
    this.#sentAt = performance.now();
    this.#waitedBeforeMs = this.#waitedUntil(this.#sentAt);
  }

  /** The server has asked its client something on behalf of the call. */
  waitsForClient(): void {
    if (this.#waits++ === 0) this.#waitsSince = performance.now();
  }

  /** One of its questions has an answer, or needs none any more. */
  settled(): void {
    if (this.#waits === 0) return; // the server has answered, whatever it asked
    this.waitedMs = this.#waitedUntil(performance.now());
    this.#waits -= 1;
    this.#waitsSince = performance.now();
  }

  /** The server is being started, or started again; calls that follow before `started` change nothing. */
  awaitsStart(): void {
    if (this.#awaitsStart) return;
    this.#awaitsStart = true;
    this.waitsForClient();
  }

  /** The server has the call, or is about to. */
  started(): void {
    if (!this.#awaitsStart) return;
    this.#awaitsStart = false;
    this.settled();
  }

  /** The server's response was read; what follows until the end is the gateway's own. */
  responseReceived(): void {
    const now = performance.now();
    this.waitedMs = this.#waitedUntil(now);
    this.#waits = 0;
    if (this.#sentAt !== undefined) this.serverMs = now - this.#sentAt - (this.waitedMs - this.#waitedBeforeMs);
  }

  #waitedUntil(now: number): number {
    return this.#waits === 0 ? this.waitedMs : this.waitedMs + now - this.#waitsSince;
  }

  /** The client has the server's response, or one that was made of it or in its place. */
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

  /** Its client is gone. */
  left(): void {
    this.#end(left);
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

/** Opens the calls of one session, each when its request is there; undefined if nobody wants to be told. */
export function createCallReporter(
  calls: CallObserver | undefined,
  principal: Principal,
  name: Pick<CallOrigin, 'server' | 'session'>,
): ((request: CallRequest, came?: ArrivalInfo) => CallReport) | undefined {
  const origin: CallOrigin = { ...name, era: 'legacy', principal };
  return calls && ((request, came) => new CallReport(calls, origin, request, came));
}

/** Both are told, the first one first; either may be absent. */
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
