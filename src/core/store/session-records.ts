import type { Principal } from '../protocol/principal.ts';
import type { LogPosition } from '../protocol/wire/event-id.ts';
import type { PendingCall } from './event-log.ts';

/** The data of a session beside its events. */
export interface SessionRecord {
  /** The configured server's name. */
  readonly server: string;
  /** The digest of the server's configuration. An instance with another digest must not serve the session. */
  readonly serverDigest: string;
  readonly principal: Principal;
  /**
   * The instance that has the backend; empty after a release, so that any instance may take the session over at once.
   */
  readonly owner: string;
  /** The fencing token of the ownership, which grows with every takeover. */
  readonly epoch: number;
  /** The client's `initialize` request as the client sent it. A restore replays it. */
  readonly initialize: Buffer;
  /** The server's response to `initialize` as the server sent it. A restore compares the new server with it. */
  readonly initialized: Buffer;
  /** The revision that the server chose. */
  readonly protocolVersion: string;
  /** The small part of the client's state, which changes while the session is used. The session defines the format. */
  readonly clientState: Buffer;
  /**
   * Other messages of the client to its server that a restore needs. The value can be large and rarely changes. The
   * session defines the format.
   */
  readonly clientSaid: Buffer;
}

/** The parts of a record that its owner may replace. An absent part stays as it is. */
export type RecordChanges = Partial<Pick<SessionRecord, 'clientState' | 'clientSaid'>>;

/** The newest event of a stream, kept or not. */
export interface StreamTail {
  readonly newest: LogPosition;
  readonly ended: boolean;
}

/** The state of a session's streams. A new owner continues from this state, and an owner that registers sends it. */
export interface LogState {
  /** The streams whose newest event is known. Ended streams may be forgotten together with their events. */
  readonly tails: ReadonlyMap<number, StreamTail>;
  /** The highest number of a stream that has had an event; -1 if there is none. */
  readonly newestStream: number;
  readonly pending: readonly PendingCall[];
}

/**
 * The result of a takeover. See `takeover-limit.ts` for the last two.
 *
 * - `taken`: the caller owns the session under `record.epoch`.
 * - `moved`: the session has another owner or epoch than the caller knew. The caller should look it up again.
 * - `unknown`: there is no such session, or it has ended.
 * - `paused`: the last owners were lost without progress, so the next takeover has to wait for `pauseMs`.
 * - `worn_out`: too many owners were lost without progress. The session was ended, since it may be what kills its
 *   owners.
 */
export type TakeOver =
  | { readonly outcome: 'taken'; readonly record: SessionRecord; readonly log: LogState }
  | { readonly outcome: 'paused'; readonly pauseMs: number }
  | { readonly outcome: 'moved' | 'unknown' | 'worn_out' };

/** The result of `SessionRecords.register`. */
export type Registration = 'registered' | 'fenced' | 'ended' | 'outdated';

/** The error for a key under which another session exists or existed. */
export class SessionExists extends Error {
  constructor() {
    super('a session with this key exists or existed already');
  }
}

/** The error for a record that another version of the gateway has written, and this one cannot read. */
export class OtherRecordVersion extends Error {
  override readonly name = 'OtherRecordVersion';

  /** @param found the version of the record; 0 if it has none */
  constructor(found: number, oldest: number, newest: number) {
    super(
      `A session record has version ${found || 'none'}, and this gateway reads ${oldest === newest ? oldest : `${oldest} to ${newest}`}. ` +
        'Run gateways of one release, or of two that follow each other, on one Redis. ' +
        'Sessions of other releases need another --cluster.prefix, or end after their time.',
    );
  }
}

/** The instance that registers a session. */
export interface Registrant {
  /** Counts the registrations of one process; 0 if there is only one. */
  readonly term: number;
  /**
   * The time, by the store's clock in milliseconds, until which the caller may replace a record of a lower epoch; without
   * limit if absent. That is the end of the caller's lease: later, another instance that found no record in a store that
   * had lost its data may act as the owner. The caller is `fenced` then. The time counts when the store registers the
   * session, so a call that was under way for long does no harm.
   */
  readonly displacesUntilMs?: number;
}

/**
 * The records of sessions. The epoch in a record is the fence (P6): the store refuses a write under any other epoch.
 * A rejection with `StoreUnavailable` is an unknown outcome; every method may be called again with the same arguments.
 * A record never expires before its log; both live for the record's time after the last `renew`, `append` or change.
 */
export interface SessionRecords {
  /**
   * Stores a new session's record; from then on `append` accepts its epoch. Rejects with `SessionExists` if another
   * session exists under this key or has ended under it: two sessions must never become one (P11). A record with the
   * stored owner and epoch is the caller's own retry and is accepted.
   * @param how `followsEnded` is for a key that names a slot which sessions of one principal use in turn, rather than
   *   one client's session. A new session may then follow one that ended under a lower epoch, whose owner is fenced
   *   off.
   */
  create(key: string, record: SessionRecord, how?: { readonly followsEnded?: boolean }): Promise<void>;
  /**
   * Returns the record, or undefined for a session that is unknown or has ended. Rejects with `OtherRecordVersion` for one
   * that this build cannot read. Such a record is never taken over: `takeOver` calls it `moved`.
   */
  find(key: string): Promise<SessionRecord | undefined>;
  /** Replaces parts of the record. `fenced` and `no_record` mean the same as for `append`. */
  amend(key: string, epoch: number, changes: RecordChanges): Promise<'done' | 'fenced' | 'no_record'>;
  /**
   * Registers a session that the caller owns again: after the caller's lease lapsed, under a new owner's name, and
   * after the store lost data. The higher epoch wins, as
   * long as the caller's lease is valid. If the store has no record or an older one, it stores the
   * caller's record with the state of its log. If the stored record has the same epoch, only the owner's name is
   * replaced.
   *
   * Lost events are not restored, so a resume reports the break.
   *
   * - `ended`: the session was ended meanwhile.
   * - `outdated`: the same process has registered the session in a later term. This call was abandoned and arrived
   *   late, and the name in it may be dead.
   * @param tail the number of the newest event of the record's epoch
   */
  register(
    key: string,
    record: SessionRecord,
    tail: number,
    log: LogState,
    registrant?: Registrant,
  ): Promise<Registration>;
  /**
   * Takes a session over from an owner that is lost or has released it. The session gets a new epoch, a new owner and a
   * marker in the log. Events of the old epoch are no longer accepted. The caller has to ensure that the old owner is
   * lost (`Instances.declareDead`).
   * @param from the owner and the epoch that the caller knows
   */
  takeOver(key: string, from: { readonly owner: string; readonly epoch: number }, owner: string): Promise<TakeOver>;
  /** Records that the session has made progress under this owner. Earlier takeovers no longer count. */
  confirmTakeover(key: string, epoch: number): Promise<'done' | 'fenced' | 'no_record'>;
  /** Releases a session for other instances: the owner becomes empty. */
  release(key: string, epoch: number): Promise<'done' | 'fenced' | 'no_record'>;
  /**
   * Keeps these sessions from expiring, with all of their data but the events, which age. One call takes many sessions.
   */
  renew(keys: readonly string[]): Promise<void>;
  /**
   * Removes the record and the events, and remembers for a while that the session ended, so that nobody revives it. An
   * unknown session is no error.
   * @param epoch if given, a session under a newer epoch is not changed: an owner ends only what it owns
   */
  end(key: string, epoch?: number): Promise<void>;
}
