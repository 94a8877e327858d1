// src/core/reply: the answer to one client request, as sessions see it, whatever carries it.
import type { Reason, RequestId } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Accepts } from '../protocol/http/media-types.ts';
import type { Message } from '../protocol/message/message.ts';
import type { EventBatch } from './event-batch.ts';

/**
 * What a session needs to know about a client's request. The context of a request is these facts. Their JSON travels
 * with a request that another instance answers.
 */
export interface RequestFacts {
  /** The media types that the client's `Accept` allows. */
  readonly accepts: Accepts;
  /** The headers of the client's request for the session's server; absent for none. */
  readonly forwarded?: ForwardedHeaders | undefined;
  /** The id that names the client's request in the logs of several services; absent if the request has none. */
  readonly requestId?: string | undefined;
  /** The time at which the request had arrived completely, on this process's clock in ms; absent if nobody needs it. */
  readonly receivedAt?: number | undefined;
}

/** The facts of a request where none may be forgotten: a new fact does not compile until it is given, too. */
export type EveryFact = { readonly [Fact in keyof RequestFacts]-?: RequestFacts[Fact] | undefined };

/** An answer that is complete at once. */
export type CompleteAnswer =
  /** One JSON text, with status 200 unless another one is given. */
  | {
      readonly kind: 'json';
      readonly text: Buffer;
      /** The text as it was read, for a reader in this process. It does not travel. */
      readonly message?: Message | undefined;
      readonly headers?: Headers | undefined;
      readonly status?: number | undefined;
    }
  /** 202 without a body: the notification or response was accepted. */
  | { readonly kind: 'accepted' }
  /** 200 without a body: the session was removed. */
  | { readonly kind: 'removed' }
  /** 204: nothing will ever follow. */
  | { readonly kind: 'nothing' }
  | FaultAnswer;

/** The catalogue's error for a reason. */
export interface FaultAnswer {
  readonly kind: 'fault';
  readonly reason: Reason;
  /** The request that the error answers; null for none. */
  readonly id: RequestId | null;
  readonly data?: Readonly<Record<string, unknown>> | undefined;
  /** True if the fault ends a call, whose end is reported already. The endpoint reports those of all other requests. */
  readonly isReported?: boolean;
}

/** The answer to a notification or response that was accepted. */
export const accepted: CompleteAnswer = { kind: 'accepted' };

/** The answer to a client for which nothing will ever follow. */
export const nothing: CompleteAnswer = { kind: 'nothing' };

/** Creates the answer that is the catalogue's error for a reason. */
export const faultAnswer = (reason: Reason, id: RequestId | null, data?: FaultAnswer['data']): FaultAnswer => ({
  kind: 'fault',
  reason,
  id,
  ...(data && { data }),
});

/**
 * The HTTP response to one client request, as a session sees it. The session decides the answer and its time, and
 * `http/` sends the bytes to the client. The session calls exactly one of `answer` and `stream`, once.
 */
export interface Reply {
  readonly request: RequestFacts;
  /** True if the client already has an event id of this stream, on this connection. It then needs no priming event. */
  readonly isContinued?: boolean;
  /** True once the client has disconnected. An answer then has no effect. */
  readonly isGone: boolean;
  /** Calls the listener once if the connection is lost before the answer was sent completely. */
  onGone(listener: () => void): void;
  /** Sends a complete answer. */
  answer(answer: CompleteAnswer): void;
  /** Answers 200 with an event stream. The head is sent with the first event, or soon without one. */
  stream(headers?: Headers): EventSink;
}

/** Response headers beside those that belong to the content type. */
export type Headers = Readonly<Record<string, string>>;

/** The open event stream of one connection. */
export interface EventSink {
  /**
   * Writes the events of a batch.
   * @returns false if the client does not keep up. The caller must then not write before `onDrain`.
   */
  write(batch: EventBatch): boolean;
  /** Calls the listener whenever writing may continue after a `false`. */
  onDrain(listener: () => void): void;
  /** Calls the listener once when the connection is closed, by either side. */
  onClose(listener: () => void): void;
  /** Ends the stream in order, after all written events. */
  end(): void;
  /**
   * Hands the stream over to the session's next owner, on the same connection. Absent if only the client can resume.
   */
  handOver?(): void;
  /** Closes the connection at once and drops unsent events. */
  cut(): void;
}
