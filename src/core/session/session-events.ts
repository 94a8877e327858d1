import type { BackendEnd } from '../backend/backend.ts';
import type { CallTelemetry } from '../call/call-events.ts';
import type { BadAnswer } from '../protocol/message/message.ts';
import type { StoreEvent } from '../store/store-events.ts';
import type { Emit } from '../util/telemetry/emit.ts';
import type { Meter } from '../util/telemetry/meter.ts';
import type { SessionEndReason } from './end-reason.ts';

/**
 * Why a session dropped a message.
 * `noise`: a line of the server is not JSON-RPC.
 * `bad_response`: an answer of the server is no valid message. Its call ended with an error.
 * `unknown_response`: the server answered an unknown or cancelled request.
 * `late`: progress of a cancelled call.
 * `unknown_client_response`: the client answered an unknown request.
 * `undeliverable`: the client was gone before it could resume, or the limit before a session is ready was reached.
 * `oversized`: a message is larger than an event may be.
 * `unattributable`: a message for one client of a group does not tell which.
 * `history_lost`: events that a client asked for were no longer kept, and the client was told.
 */
export type SessionDropReason =
  | 'noise'
  | 'bad_response'
  | 'unknown_response'
  | 'unknown_client_response'
  | 'late'
  | 'undeliverable'
  | 'oversized'
  | 'unattributable'
  | 'history_lost';

/** The name of a session where ids must not appear (P12): its server and the start of its key, a hash. */
export interface SessionName {
  readonly server: string;
  readonly session: string;
}

/** The name of a session by its key. */
export const sessionName = (key: string, server: string): SessionName => ({ server, session: key.slice(0, 8) });

/**
 * The outcome of a resume. `resumed`: the stream continues. `complete`: nothing will follow. `history_lost`: the client
 * was told of a gap. `unknown`: there is no such stream or event. `failed`: the log could not be read.
 */
export type ResumeOutcome = 'resumed' | 'complete' | 'history_lost' | 'unknown' | 'failed';

/** How a session got a backend after its first. */
export interface Restoration {
  /** True if the last backend was hibernated rather than lost. */
  readonly isWaking: boolean;
  /** How many backends the session has lost at this instance. The backend of an earlier owner does not count. */
  readonly losses: number;
}

/**
 * Why a session hibernates. `idle`: it was not used. `abandoned`: its client has closed its stream. `reused`: another
 * session of its client uses the process.
 */
export type HibernationReason = 'idle' | 'abandoned' | 'reused';

/** An event of a session. Contents and ids are never passed, except `text` for debugging. */
export type SessionEvent = Readonly<
  | { type: 'session-started'; name: SessionName; protocolVersion: string; startMs: number; pid: number | undefined }
  | {
      type: 'session-ended';
      name: SessionName;
      reason: SessionEndReason;
      dropped: Readonly<Partial<Record<SessionDropReason, number>>>;
      /** The code of the error with which the server refused `initialize`. */
      errorCode: number | undefined;
    }
  /**
   * A session of an earlier process or another instance continues here, with this many unanswered calls. `lostInstance`
   * is the instance that was lost; undefined if its owner has left the session.
   */
  | { type: 'session-adopted'; name: SessionName; pending: number; lostInstance: string | undefined }
  /** A session was ended because its owners were lost too often in a short time. The session may be the cause. */
  | { type: 'takeover-limit-reached'; name: SessionName }
  /**
   * The server ended by itself, or could not be started. `isAtStart`: the session's first server has not answered
   * `initialize`.
   */
  | { type: 'backend-ended'; name: SessionName; end: BackendEnd; isAtStart: boolean }
  /** The session has no backend until the next message. */
  | { type: 'session-hibernated'; name: SessionName; reason: HibernationReason }
  /** A lost backend was replaced, or a hibernated session has a backend again. */
  | { type: 'backend-restored'; name: SessionName; pid: number | undefined; restoration: Restoration }
  /**
   * `text` is the dropped message, for debugging only: it may hold anything. `count`: how many such messages there
   * were, 1 by default. `isAtStart`: the session's first backend has not answered `initialize`.
   */
  | {
      type: 'session-message-dropped';
      name: SessionName;
      reason: SessionDropReason;
      count?: number;
      text: Buffer | undefined;
      isAtStart: boolean;
      /** Set for `bad_response`. */
      answer?: BadAnswer | undefined;
    }
  /** A fault of the gateway itself. */
  | { type: 'session-failed'; name: SessionName; cause: unknown }
  /** A client did not read its stream for too long, so its connection was cut. */
  | { type: 'session-client-cut'; name: SessionName }
  /** A client has asked to continue a stream. The session is unknown if this instance answered for its lost owner. */
  | { type: 'stream-resumed'; server: string; session?: string | undefined; outcome: ResumeOutcome }
>;

/** How sessions report what happens to them. All sessions of an instance share it. */
export interface SessionTelemetry {
  readonly emit: Emit<SessionEvent | StoreEvent>;
  /** Counts the events that were sent to clients, as they came or from the log. */
  readonly delivered: Readonly<Record<'live' | 'replayed', Meter>>;
  /** Reports the calls of sessions; absent if nobody wants reports. */
  readonly calls?: CallTelemetry | undefined;
}
