import type { Principal } from '../protocol/principal.ts';
import type { LogPosition } from '../protocol/wire/event-id.ts';
import type { PendingCall } from './event-log.ts';

/** What is known of a session, beside its events. */
export interface SessionRecord {
  /** The configured server's name. */
  readonly server: string;
  /** Digest of the server's configuration: an instance with another one must not serve the session. */
  readonly serverDigest: string;
  readonly principal: Principal;
  /** The instance that holds the backend; empty if it released the session, so that any other may take it at once. */
  readonly owner: string;
  /** The fencing token of its ownership: larger at every takeover. */
  readonly epoch: number;
  /** The client's initialize request, as it was sent: what a restore replays. */
  readonly initialize: Buffer;
  /** The server's response to it, as it was sent: what a restored server is compared with. */
  readonly initialized: Buffer;
  /** The revision that the server chose. */
  readonly protocolVersion: string;
  /** What changes while the session is used, and is small; the session's own format. */
  readonly clientState: Buffer;
  /** What else the client has told its server, for a restore. It can be large and seldom changes; the session's own format. */
  readonly clientSaid: Buffer;
}

/** The parts of a record that its owner replaces; what is absent stays. */
export type RecordChanges = Partial<Pick<SessionRecord, 'clientState' | 'clientSaid'>>;

/** Which event of a stream is its newest, kept or not. */
export interface StreamTail {
  readonly newest: LogPosition;
  readonly ended: boolean;
}

/** Where the streams of a session stand: what a new owner goes on from, and what one registers again. */
export interface LogState {
  /** Streams whose newest event is known; ended ones may be forgotten with their events. */
  readonly tails: ReadonlyMap<number, StreamTail>;
  /** The highest number of a stream that has had an event; -1 for none. */
  readonly newestStream: number;
  readonly pending: readonly PendingCall[];
}

/**
 * `taken`: the session is the caller's under `record.epoch`. `moved`: it has another owner or epoch than the caller knew;
 * look again. `unknown`: there is no such session, or it has ended. `paused`: its last owners were lost without progress, so the
 * next takeover has to wait for `pauseMs`. `worn_out`: too many were; the session was ended, since it may be what its owners
 * die of. See `takeover-limit.ts`.
 */
export type TakeOver =
  | { readonly outcome: 'taken'; readonly record: SessionRecord; readonly log: LogState }
  | { readonly outcome: 'paused'; readonly pauseMs: number }
  | { readonly outcome: 'moved' | 'unknown' | 'worn_out' };

/** See `SessionRecords.register`. */
export type Registration = 'registered' | 'fenced' | 'ended' | 'outdated';

/** There is, or was, another session under a key. */
export class SessionExists extends Error {
  constructor() {
    super('a session with this key exists or existed already');
  }
}

/**
 * The records of sessions. The epoch in a record is the fence (P6): whoever writes under another one is refused.
 * A rejection with `StoreUnavailable` is an unknown outcome; every method may be called again with the same arguments.
 * A record never expires before its log; both live for the record's time after the last `renew`, `append` or change.
 */
export interface SessionRecords {
  /**
   * Stores a new session's record; from then on `append` accepts its epoch. Rejects with `SessionExists` if there is another
   * one under this key, or one has ended: two sessions must never become one (P11). The same record again, by owner and
   * epoch, is the caller's own retry.
   * @param how `followsEnded` if the key names no client's session but a place that sessions of one principal have in turn:
   *   then one may come after another that has ended under a lower epoch, whose owner is fenced off
   */
  create(key: string, record: SessionRecord, how?: { readonly followsEnded?: boolean }): Promise<void>;
  /** The record, or undefined for a session that is unknown or has ended. */
  find(key: string): Promise<SessionRecord | undefined>;
  /** Replaces parts of the record. `fenced` and `no_record` as for `append`. */
  amend(key: string, epoch: number, changes: RecordChanges): Promise<'done' | 'fenced' | 'no_record'>;
  /**
   * Says again what the caller owns: after its lease lapsed, under a new owner's name, and after the store lost data. The
   * higher epoch wins: over an older record or none the caller's is stored with its log's state (`tail` is the number of
   * the newest event of its epoch; events themselves are not brought back, so that resumes tell the break); over its own
   * only the owner's name is. `ended`: the session was ended meanwhile. `outdated`: the same owner has registered it in a
   * later term; this call was given up and came late, and its name may be dead.
   * @param term counts the registrations of one process; 0 if there is only one
   */
  register(key: string, record: SessionRecord, tail: number, log: LogState, term?: number): Promise<Registration>;
  /**
   * Takes a session over from a lost or releasing owner: new epoch, new owner, a marker in the log, so that nothing of the
   * old epoch is appended any more. Whether the owner is lost is for the caller to know (`Instances.declareDead`).
   * @param from what the caller knows of the session
   */
  takeOver(key: string, from: { readonly owner: string; readonly epoch: number }, owner: string): Promise<TakeOver>;
  /** The session has made progress under this owner: the takeovers before it do not count any more. */
  confirmTakeover(key: string, epoch: number): Promise<'done' | 'fenced' | 'no_record'>;
  /** Gives a session up for others: its owner becomes empty. */
  release(key: string, epoch: number): Promise<'done' | 'fenced' | 'no_record'>;
  /** Keeps these sessions from expiring: records, logs and all. One sweep, many sessions. */
  renew(keys: readonly string[]): Promise<void>;
  /**
   * Removes the record and the events, and remembers for a while that the session ended, so that nobody revives it. A
   * session that is not there is no error.
   * @param epoch if given, only while the session is under this epoch or an older one: an owner ends only what it owns
   */
  end(key: string, epoch?: number): Promise<void>;
}
