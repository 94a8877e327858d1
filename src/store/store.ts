import type { Position } from '../protocol/event-id.ts';

/**
 * What outlives a connection: the events of each session and the record of what the session is. One implementation in
 * memory, for one instance; the contract suite in `test/contract/` runs against every implementation.
 *
 * A session is named by its key, never by the id that clients hold: the key is a hash, so that a store's contents do
 * not open sessions (P12).
 */
export interface Store {
  readonly log: EventLog;
  readonly sessions: SessionRecords;
  /** Gives back everything it holds. Idempotent. */
  close(): Promise<void>;
}

/** One event to append. */
export interface NewEvent {
  /** The stream of the session that it belongs to; 0 is the standalone GET stream. */
  readonly stream: number;
  /** Its number in the log, one more than the last one's. */
  readonly seq: number;
  /** The stream's event before this one; undefined for the stream's first. The chain that makes a gap visible. */
  readonly previous: Position | undefined;
  /** The JSON text of its message; empty for a priming event. */
  readonly data: Buffer;
  /** True for the event after which the stream ends: its answer is complete. */
  readonly last: boolean;
}

/** One event as it was stored. */
export interface StoredEvent extends NewEvent {
  readonly epoch: number;
}

/**
 * `stored`: all are in the log, in order. `already`: they were, from an earlier attempt of the same call. `fenced`: a
 * newer owner has the session (P6). `gap`: the log's tail is not `expectedTail`, nothing was stored. `no_record`: the
 * session is not known. Nothing is ever stored in part.
 */
export type AppendOutcome = 'stored' | 'already' | 'fenced' | 'gap' | 'no_record';

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
      readonly newest: Position | undefined;
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
 * One append-only list of events per session (DESIGN decision 2).
 *
 * Order: the events of a session are totally ordered; a read returns a stream's in that order, without gap and without
 * duplicate unless it says `broken`. Durability: an event reported as `stored` is read by every later read, on any
 * instance, until the limits (count, bytes, age) evict it, oldest first.
 */
export interface EventLog {
  /**
   * Appends events with consecutive numbers, all or none. Rejects if the numbers are not consecutive. The store owns the
   * events' buffers from the call on: they are kept uncopied unless they are small parts of larger memory.
   * @param expectedTail the number of the last event that the caller knows to be in the log under this epoch; 0 for none
   */
  append(key: string, epoch: number, expectedTail: number, events: readonly NewEvent[]): Promise<AppendOutcome>;

  /** The events of one stream after a place, or from its oldest on, at most `limit` of them (at least one if there is one). */
  read(key: string, stream: number, after: Position | undefined, limit: number): Promise<ReadOutcome>;
}

/** Who made a session; to anyone else it does not exist (P11). All empty while the gateway does no authentication. */
export interface Principal {
  readonly issuer: string;
  readonly subject: string;
  readonly client: string;
}

/** What is known of a session, beside its events. */
export interface SessionRecord {
  /** The configured server's name. */
  readonly server: string;
  readonly principal: Principal;
  /** The instance that holds the backend. */
  readonly owner: string;
  /** The fencing token of its ownership. */
  readonly epoch: number;
  /** The client's initialize request, as it was sent: what a restore replays. */
  readonly initialize: Buffer;
  /** The revision that the server chose. */
  readonly protocolVersion: string;
}

/** The records of sessions. */
export interface SessionRecords {
  /**
   * Stores a new session's record; from then on `append` accepts its epoch. Rejects if there is one under this key: two
   * sessions must never become one (P11).
   */
  create(key: string, record: SessionRecord): Promise<void>;
  /** The record, or undefined for a session that is unknown or has ended. */
  find(key: string): Promise<SessionRecord | undefined>;
  /** Removes the record and the events. A session that is not there is no error. */
  end(key: string): Promise<void>;
}

/** The limits of one session's log (P8); what is over them is evicted, oldest first. */
export interface LogLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}
