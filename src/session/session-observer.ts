import type { BackendEnd, OpenBackend } from '../backend/backend.ts';
import type { CallObserver } from '../call/call-report.ts';
import { StoreUnavailable } from '../store/store-unavailable.ts';
import type { SessionEndReason } from './end-reason.ts';

/**
 * Why a session dropped a message.
 * `noise`: a line of the server is not JSON-RPC.
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

/** Observes the streams of a server's clients. */
export interface StreamObserver {
  resumed(outcome: ResumeOutcome): void;
  /** This many events were sent to clients, live or from the log. */
  delivered(count: number, source: 'live' | 'replayed'): void;
}

/** How a session got a backend after its first. */
export interface Restoration {
  /** True if the last backend was hibernated rather than lost. */
  readonly isWaking: boolean;
  /** How many backends the session has lost at this instance. */
  readonly losses: number;
}

/** Observes sessions for logs and metrics. Contents and ids are never passed. */
export interface SessionObserver {
  /** Observes the calls of sessions; absent if not needed. */
  readonly calls?: CallObserver | undefined;
  /** The observer for the streams of a server's clients, or of one session; absent if not needed. */
  streamsOf?(server: string, session?: string): StreamObserver;
  /** Decorates the backends of a session to observe their traffic; absent if not needed. */
  seeBackends?(name: SessionName, open: OpenBackend): OpenBackend;
  started(name: SessionName, details: { protocolVersion: string; startMs: number; pid: number | undefined }): void;
  ended(
    name: SessionName,
    details: {
      reason: SessionEndReason;
      dropped: Partial<Record<SessionDropReason, number>>;
      /** The code of the error with which the server refused `initialize`. */
      errorCode?: number | undefined;
    },
  ): void;
  /** A session was taken over from another instance, with this many unanswered calls. */
  adopted(name: SessionName, details: { pending: number }): void;
  /** A session was ended because its owners were lost too often in a short time. The session may be the cause. */
  takeoverLimitReached(name: SessionName): void;
  /**
   * The server ended by itself, or could not be started. `isAtStart`: the session's first server has not answered
   * `initialize`.
   */
  backendEnded(name: SessionName, end: BackendEnd, details: { readonly isAtStart: boolean }): void;
  /** The session is unused, so its backend is ended until the next message. */
  hibernated(name: SessionName): void;
  /** A lost backend was replaced, or (`isWaking`) a hibernated session has a backend again; see `Restoration`. */
  restored(name: SessionName, details: Restoration & { readonly pid: number | undefined }): void;
  /**
   * `text` is the dropped message, for debugging only: it may hold anything. `isAtStart`: the session's first backend
   * has not answered `initialize`.
   */
  dropped(name: SessionName, what: SessionDropReason, text?: Buffer, isAtStart?: boolean): void;
  /** A fault of the gateway itself. */
  failed(name: SessionName, cause: unknown): void;
  /** The shared store answers, for the first time or again. */
  clusterJoined(): void;
  /** A call of the shared store failed. */
  clusterFailed(cause: unknown): void;
}

/**
 * Reports a failure in a session. A store that is away or full is reported as such; anything else is a fault of the
 * gateway itself.
 */
export function reportFailure(observer: SessionObserver, name: SessionName, cause: unknown): void {
  if (cause instanceof StoreUnavailable) observer.clusterFailed(cause);
  else observer.failed(name, cause);
}
