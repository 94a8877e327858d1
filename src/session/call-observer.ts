import { maxNameLength, nameOfCall } from '../protocol/call-name.ts';
import type { Reason } from '../protocol/faults.ts';
import { type Message, memberValue, placeOf } from '../protocol/message.ts';
import { ownFaultOf } from '../protocol/own-fault.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Principal } from '../store/session-records.ts';

/**
 * How a call ended. `ok`: with a result of the server. `error`: with its error. `fault`: with an error of the gateway's own.
 * `left`: its client was gone before there was an answer, and nobody can come back for one.
 */
export type CallOutcome =
  | { readonly kind: 'ok' | 'left' }
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
export interface EndedCall extends CallOrigin {
  /** What the client calls; undefined where its request was refused unread. */
  readonly method: string | undefined;
  /** Of a tool or prompt. The URI of a resource is none: with what a template puts into it, it can be content. */
  readonly name: string | undefined;
  readonly outcome: CallOutcome;
  /** Since the gateway, or the instance that took the session over, has had the request. */
  readonly durationMs: number;
  /** Of the request as it came; 0 where it is not kept. */
  readonly bytesIn: number;
  /** Of the server's response; 0 for a fault. */
  readonly bytesOut: number;
}

/**
 * Is told of each call of a client when it has ended, once: by the owner of its session, or by the instance that refused it.
 * Requests that the gateway itself makes of servers are no calls.
 */
export interface CallObserver {
  ended(call: EndedCall): void;
}

/** A request as far as it is known. */
export type CallRequest = Pick<Message, 'method'> & {
  readonly text?: Buffer | undefined;
  readonly name?: string | undefined;
};

/** What a request says of the call that it is. */
export const callRequestOf = (request: Message): CallRequest => {
  const { method, text } = request;
  return { method, text, name: nameOfCall(request) };
};

/** One call that somebody wants to be told of. Only the first end counts. */
export class OpenCall {
  readonly #observer: CallObserver;
  readonly #origin: CallOrigin;
  readonly #method: string | undefined;
  readonly #startedAt: number;
  readonly #bytesIn: number;
  /** Of the tool or prompt. */
  readonly name: string | undefined;
  #hasEnded = false;

  /** @param startedAt on the monotonic clock, in milliseconds */
  constructor(observer: CallObserver, origin: CallOrigin, request?: CallRequest, startedAt = performance.now()) {
    this.#observer = observer;
    this.#origin = origin;
    this.#method = request?.method?.slice(0, maxNameLength);
    this.name = request?.name;
    this.#bytesIn = request?.text?.length ?? 0;
    this.#startedAt = startedAt;
  }

  /** The server's response, or one that was made of it or in its place. */
  answered(response: Message): void {
    const bytesOut = response.text.length;
    if (placeOf(response, 'message', 'error') === undefined) return this.#end({ kind: 'ok' }, bytesOut);
    const reason = ownFaultOf(response);
    if (reason !== undefined) return this.failed(reason);
    const error = memberValue(response, 'message', 'error') as { readonly code?: unknown } | null;
    this.#end({ kind: 'error', code: typeof error?.code === 'number' ? error.code : undefined }, bytesOut);
  }

  failed(reason: Reason): void {
    this.#end({ kind: 'fault', reason });
  }

  /** Its client is gone. */
  left(): void {
    this.#end({ kind: 'left' });
  }

  #end(outcome: CallOutcome, bytesOut = 0): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#observer.ended({
      ...this.#origin,
      ...{ method: this.#method, name: this.name, outcome, bytesIn: this.#bytesIn, bytesOut },
      durationMs: Math.round(performance.now() - this.#startedAt),
    });
  }
}

/** Opens the calls of one session, each when its request is there; undefined if nobody wants to be told. */
export function watcherFor(
  calls: CallObserver | undefined,
  principal: Principal,
  name: Pick<CallOrigin, 'server' | 'session'>,
): ((request: CallRequest) => OpenCall) | undefined {
  return calls && ((request) => new OpenCall(calls, { ...name, era: 'legacy', principal }, request));
}
