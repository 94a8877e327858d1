import type { RequestId } from '../protocol/faults.ts';
import type { LogPosition } from '../protocol/wire/event-id.ts';
import type { Meter } from '../util/telemetry/meter.ts';

/** The number of the standalone GET stream; the streams of POSTs count up from 1. */
export const getStream = 0;

/** A client's request whose answer is a stream, and which its server has not answered yet. */
export interface PendingCall {
  readonly stream: number;
  /** The id under which the server knows the request. */
  readonly id: RequestId;
  /** The client's id, and progress token if any, as JSON texts; absent if the server got them unchanged. */
  readonly client?: readonly [id: string, token: string | null];
  readonly method: string;
  /** The tool or prompt that the request names. Absent where nobody observes the end of the call. */
  readonly name?: string;
  /** The request as the server got it; undefined where it may not be run again. */
  readonly text: Buffer | undefined;
}

/** One event to append. */
export interface NewEvent {
  /** The number of the session's stream that the event belongs to; 0 is the standalone GET stream. */
  readonly stream: number;
  /** The event's number in the log: one more than that of the event before. */
  readonly seq: number;
  /** The stream's event before this one; undefined for the stream's first. This chain makes a gap visible. */
  readonly previous: LogPosition | undefined;
  /** The JSON text of the event's message; empty for a priming event. */
  readonly data: Buffer;
  /** True for the event that completes the stream's answer and ends the stream. */
  readonly last: boolean;
  /**
   * The requests that are pending from this event on. A stream's first event lists the requests that the stream
   * answers.
   */
  readonly opens?: readonly PendingCall[];
  /** The request that this event answers. The request is no longer pending. */
  readonly settles?: RequestId;
}

/** One stored event. */
export interface StoredEvent extends Omit<NewEvent, 'opens' | 'settles'> {
  readonly epoch: number;
}

/**
 * The result of an append. A batch is never stored in part.
 *
 * - `stored`: all events are in the log, in order.
 * - `already`: an earlier attempt of the same call has stored them.
 * - `fenced`: a newer owner has the session, or the session has ended (P6).
 * - `gap`: nothing was stored, because the newest event of this epoch in the log is `tail` and not `expectedTail`.
 * - `no_record`: the store knows no record of the session, or only one of an older epoch. The store lost what this
 *   owner had written; `SessionRecords.register` restores the record.
 */
export type AppendOutcome =
  | { readonly outcome: 'stored' | 'already' | 'fenced' | 'no_record' }
  | { readonly outcome: 'gap'; readonly tail: number };

/** The result of a read. */
export type ReadOutcome =
  | {
      readonly outcome: 'ok';
      /** The stream's events after the requested position, oldest first, as many as the limits of the read allow. */
      readonly events: readonly StoredEvent[];
      /** True if events between the requested position and the first returned event are no longer kept. */
      readonly broken: boolean;
      /** True if `events` reaches the stream's newest event. */
      readonly atTail: boolean;
      /** True if the stream has ended: nothing will follow its newest event. */
      readonly ended: boolean;
      /**
       * The position of the stream's newest event, kept or not; undefined if the log has forgotten the position too.
       */
      readonly newest: LogPosition | undefined;
    }
  /**
   * No stream of this number has had an event.
   *
   * A stream that has ended and whose events are all evicted reads as `ok`, `broken` and `ended`. So does a number
   * below the newest stream's that had no event: the log cannot tell the two cases apart for ever. The GET stream, 0,
   * never ends, so neither applies to it.
   */
  | { readonly outcome: 'unknown_stream' }
  /** The requested position lies after the stream's newest event: the gateway never sent such an id. */
  | { readonly outcome: 'in_future' };

/**
 * One append-only list of events per session (docs/design.md, D2).
 *
 * Order: the events of a session are totally ordered. A read returns the events of a stream in that order, without
 * duplicates, and without gaps unless the result is `broken`.
 *
 * Durability: every later read, on any instance, finds an event reported as `stored`. The guarantee ends when the
 * limits (count, bytes, age) evict the event, oldest first, or when the store itself loses data.
 *
 * A rejection with `StoreUnavailable` is an unknown outcome: call again with the same arguments (docs/design.md, D11).
 */
export interface EventLog {
  /**
   * Appends events, all or none. Rejects unless their numbers are consecutive and larger
   * than `expectedTail`. The store owns the events' buffers from the call on. It copies a buffer only if that is a small part of larger memory.
   * @param expectedTail the number of the newest event of this epoch that the caller knows to be in the log; 0 for none
   */
  append(key: string, epoch: number, expectedTail: number, events: readonly NewEvent[]): Promise<AppendOutcome>;

  /**
   * Returns the events of one stream after a position, or from its oldest event on. At most `limit` events are
   * returned, and at least one if the stream has one there.
   */
  read(key: string, stream: number, after: LogPosition | undefined, limit: number): Promise<ReadOutcome>;
}

/** The limits of one session's log (P8). Events beyond the limits are evicted, oldest first. */
export interface LogLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  /** Counts the evicted events, as far as an implementation notices the eviction. */
  readonly evicted?: Meter | undefined;
}
