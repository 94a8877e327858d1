import type { Reason, RequestId } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Accepts } from '../protocol/http/media-types.ts';

/**
 * One client's HTTP response, as a session sees it. The session decides what to answer and when; how bytes reach the
 * client is the business of `http/`. Exactly one of the answering methods is called, once.
 */
export interface Reply {
  /** What the client's `Accept` allows. */
  readonly accepts: Accepts;
  /** What the client's request brings for the session's server; absent for nothing. */
  readonly forwarded?: ForwardedHeaders | undefined;
  /** What the credentials of the client's request allow; absent if they allow everything. */
  readonly scopes?: ReadonlySet<string> | undefined;
  /** Which scopes the request needs, all of which it has; absent for none. */
  readonly needs?: readonly string[] | undefined;
  /** When the client's request was there whole, on the monotonic clock in milliseconds, where somebody wants to know. */
  readonly receivedAt?: number | undefined;
  /** The id of the client's request, by which logs of several services name it; absent if it has none. */
  readonly requestId?: string | undefined;
  /** True if the client has an event id of this very stream already, on this connection: it needs no priming event. */
  readonly isContinued?: boolean;
  /** Set for a request that came by way of another instance, which may ask for the same again. */
  readonly attempt?: RequestAttempt | undefined;
  /** True once the client's connection is gone; answering then does nothing. */
  readonly isGone: boolean;
  /** The listener is called once if the connection goes before the answer was sent whole. */
  onGone(listener: () => void): void;
  /** One JSON text, with 200 unless another status is given. */
  json(text: Buffer, headers?: Headers, status?: number): void;
  /** 202 without a body: the notification or response was taken. */
  accepted(): void;
  /** 200 without a body: the session is no more. */
  removed(): void;
  /** 204: nothing will ever follow. */
  nothing(): void;
  /** The catalogue's answer for a reason. */
  fault(reason: Reason, id: RequestId | null, data?: Record<string, unknown>): void;
  /** 200 with an event stream, whose head is sent at once. */
  stream(headers?: Headers): EventSink;
}

/** A request that another instance asks for on behalf of its client. */
export interface RequestAttempt {
  readonly id: string;
  /** The names under which it was asked for before, oldest first. */
  readonly previousIds: readonly string[];
  /** True where not the client is gone but the way to its instance: it may ask for the answer again. */
  readonly isDetached: boolean;
}

/** Response headers beyond those that belong to the content type. */
export type Headers = Readonly<Record<string, string>>;

/** The open event stream of one connection. */
export interface EventSink {
  /**
   * Writes the text of whole events.
   * @param at the place of the last event in it that has an id: the id without requests
   * @returns false if the client does not keep up: write no more before `onDrain`
   */
  write(text: Buffer, at?: string): boolean;
  /** The listener is called whenever writing may go on after a `false`. */
  onDrain(listener: () => void): void;
  /** The listener is called once when the connection is gone, whoever closed it. */
  onClose(listener: () => void): void;
  /** Ends the stream in order, after what was written. */
  end(): void;
  /** Leaves the stream to the session's next owner, on the same connection; not there where only the client can go on. */
  handOver?(): void;
  /** Cuts the connection, dropping what was not sent yet. */
  cut(): void;
}
