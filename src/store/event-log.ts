import type { RequestId } from '../protocol/faults.ts';
import type { LogPosition } from '../protocol/wire/event-id.ts';

/** A request of a client whose answer is a stream, and which its server has not answered yet. */
export interface PendingCall {
  readonly stream: number;
  readonly id: RequestId;
  readonly method: string;
  /** The tool or prompt that it names, where somebody is to be told of its end. */
  readonly name?: string;
  /** The request as it was sent, where it may be run again. */
  readonly text: Buffer | undefined;
}

/** One event to append. */
export interface NewEvent {
  /** The stream of the session that it belongs to; 0 is the standalone GET stream. */
  readonly stream: number;
  /** Its number in the log, one more than the last one's. */
  readonly seq: number;
  /** The stream's event before this one; undefined for the stream's first. The chain that makes a gap visible. */
  readonly previous: LogPosition | undefined;
  /** The JSON text of its message; empty for a priming event. */
  readonly data: Buffer;
  /** True for the event after which the stream ends: its answer is complete. */
  readonly last: boolean;
  /** The requests that are pending from this event on: those that the stream answers, with its first event. */
  readonly opens?: readonly PendingCall[];
  /** The request that this event answers, so that it is pending no more. */
  readonly settles?: RequestId;
}

/** One event as it was stored. */
export interface StoredEvent {
  readonly epoch: number;
  readonly stream: number;
  readonly seq: number;
  readonly previous: LogPosition | undefined;
  readonly data: Buffer;
  readonly last: boolean;
}

/**
 * `stored`: all are in the log, in order. `already`: they were, from an earlier attempt of the same call. `fenced`: a
 * newer owner has the session, or it has ended (P6). `gap`: the newest event of this epoch in the log is `tail` and not
 * `expectedTail`, nothing was stored. `no_record`: the session is not known, or only under an older epoch: the store lost
 * what this owner had written, and `SessionRecords.register` brings it back. Nothing is ever stored in part.
 */
export type AppendOutcome =
  | { readonly outcome: 'stored' | 'already' | 'fenced' | 'no_record' }
  | { readonly outcome: 'gap'; readonly tail: number };

/** What a read found. */
export type ReadOutcome =
  | {
      readonly outcome: 'ok';
      /** The stream's events after the asked place, oldest first, as many as the limits of the read allow. */
      readonly events: readonly StoredEvent[];
      /** True if events between the asked place and the first one returned are no longer kept. */
      readonly broken: boolean;
      /** True if `events` reaches the stream's newest event. */
      readonly atTail: boolean;
      /** True if the stream has ended, so that nothing will follow its newest event. */
      readonly ended: boolean;
      /** The place of the stream's newest event, kept or not; undefined where even that is no longer known. */
      readonly newest: LogPosition | undefined;
    }
  /**
   * No stream of this number has had an event. One that has ended and whose events are all evicted is `ok`, `broken` and
   * `ended`; so is a number below the newest stream's that had no event, since the two cannot be told apart for ever. The
   * GET stream, 0, is exempt: it never ends.
   */
  | { readonly outcome: 'unknown_stream' }
  /** The asked place lies after the stream's newest event: not an id that was ever sent. */
  | { readonly outcome: 'in_future' };

/**
 * One append-only list of events per session (docs/design.md, D2).
 *
 * Order: the events of a session are totally ordered; a read returns a stream's in that order, without gap and without
 * duplicate unless it says `broken`. Durability: an event reported as `stored` is read by every later read, on any
 * instance, until the limits (count, bytes, age) evict it, oldest first, or the store itself loses data.
 *
 * A rejection with `StoreUnavailable` is an unknown outcome: ask again with the same arguments (docs/design.md, D11).
 */
export interface EventLog {
  /**
   * Appends events, all or none. Rejects if their numbers are not consecutive and larger than `expectedTail`. The store
   * owns the events' buffers from the call on: they are kept uncopied unless they are small parts of larger memory.
   * @param expectedTail the number of the newest event of this epoch that the caller knows to be in the log; 0 for none
   */
  append(key: string, epoch: number, expectedTail: number, events: readonly NewEvent[]): Promise<AppendOutcome>;

  /** The events of one stream after a place, or from its oldest on, at most `limit` of them (at least one if there is one). */
  read(key: string, stream: number, after: LogPosition | undefined, limit: number): Promise<ReadOutcome>;
}

/** The limits of one session's log (P8); what is over them is evicted, oldest first. */
export interface LogLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  /** Told how many events were evicted, as far as an implementation sees it happen. */
  readonly onEvicted?: ((count: number) => void) | undefined;
}
