// src/reply: the answer to one client request, as sessions see it, whatever carries it.
import type { Reason, RequestId } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Accepts } from '../protocol/http/media-types.ts';
import type { EventBatch } from './event-batch.ts';

/**
 * The HTTP response to one client request, as a session sees it. The session decides the answer and its time, and
 * `http/` sends the bytes to the client. The session calls exactly one of the answering methods, once.
 */
export interface Reply {
  /** The media types that the client's `Accept` allows. */
  readonly accepts: Accepts;
  /** The headers of the client's request for the session's server; absent for none. */
  readonly forwarded?: ForwardedHeaders | undefined;
  /** The time at which the request had arrived completely, on the monotonic clock in ms; absent if nobody needs it. */
  readonly receivedAt?: number | undefined;
  /** The id that names the client's request in the logs of several services; absent if the request has none. */
  readonly requestId?: string | undefined;
  /** True if the client already has an event id of this stream, on this connection. It then needs no priming event. */
  readonly isContinued?: boolean;
  /** Set for a request that another instance forwarded and may repeat. */
  readonly attempt?: RequestAttempt | undefined;
  /** True once the client has disconnected. An answer then has no effect. */
  readonly isGone: boolean;
  /** Calls the listener once if the connection is lost before the answer was sent completely. */
  onGone(listener: () => void): void;
  /** Answers with one JSON text, with status 200 unless another one is given. */
  json(text: Buffer, headers?: Headers, status?: number): void;
  /** Answers 202 without a body: the notification or response was accepted. */
  accepted(): void;
  /** Answers 200 without a body: the session was removed. */
  removed(): void;
  /** Answers 204: nothing will ever follow. */
  nothing(): void;
  /** Answers with the catalogue's error for a reason. */
  fault(reason: Reason, id: RequestId | null, data?: Record<string, unknown>): void;
  /** Answers 200 with an event stream and sends the head at once. */
  stream(headers?: Headers): EventSink;
}

/** One attempt of another instance to get the answer to a client's request. */
export interface RequestAttempt {
  readonly id: string;
  /** The ids of earlier attempts for the same request, oldest first. */
  readonly previousIds: readonly string[];
  /** True while the connection to the client's instance is lost but the client may still be there. It may try again. */
  readonly isDetached: boolean;
  /** True once the client was answered by its instance, without this attempt. It does not come back for the answer. */
  readonly isObsolete: boolean;
  /** Calls the listener once if a detached attempt is given up: its client has left, or has its answer. */
  onGivenUp(listener: () => void): void;
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
