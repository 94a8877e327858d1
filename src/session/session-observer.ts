import type { BackendEnd, OpenBackend } from '../backend/backend.ts';
import type { CallObserver } from '../call/call-report.ts';
import { StoreUnavailable } from '../store/store-unavailable.ts';
import type { SessionEndReason } from './end-reason.ts';

/**
 * What a session could not deliver. `noise`: a line of the server that is no JSON-RPC. `unknown_response`: the server
 * answered what nobody asked, or what was cancelled. `late`: progress of a cancelled call. `unknown_client_response`: the
 * client answered what nobody asked. `undeliverable`: an answer whose client was gone before it could resume, or more than
 * is kept before a session is ready. `oversized`: a message larger than an event may be.
 * `unattributable`: a message to one of a group's clients, and nothing says to which.
 * `history_lost`: events that a client came back for were no longer kept, and it was told.
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

/** How a session is named where ids must not appear (P12): by its server and the start of its key, a hash. */
export interface SessionName {
  readonly server: string;
  readonly session: string;
}

/** The name of a session by its key. */
export const sessionName = (key: string, server: string): SessionName => ({ server, session: key.slice(0, 8) });

/**
 * What came of a client that asked for a stream by its last event id. `resumed`: it goes on. `complete`: nothing will follow.
 * `history_lost`: it was told of a gap. `unknown`: there is no such stream or event. `failed`: the log could not be read.
 */
export type ResumeOutcome = 'resumed' | 'complete' | 'history_lost' | 'unknown' | 'failed';

/** Is told of the streams of a server's clients. */
export interface StreamObserver {
  resumed(outcome: ResumeOutcome): void;
  /** So many events went out to clients: as they came, or from the log. */
  delivered(count: number, source: 'live' | 'replayed'): void;
}

/** How a session came to a backend after its first. */
export interface Restoration {
  /** It had let go of the last one, which was not lost. */
  readonly isWaking: boolean;
  /** How many backends the session has lost at this instance. */
  readonly losses: number;
}

/** Is told what happens to sessions, so that it can be logged and counted. Contents and ids are never passed. */
export interface SessionObserver {
  /** Is told of the calls of sessions; absent if nobody wants to know. */
  readonly calls?: CallObserver | undefined;
  /** Who is told of the streams of a server's clients, or of a session's; absent if nobody wants to know. */
  streamsOf?(server: string, session?: string): StreamObserver;
  /** Sees the backends of a session and what passes them; absent if nobody wants to. */
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
  /** A session was taken over from another instance, with so many calls that it left unanswered. */
  adopted(name: SessionName, details: { pending: number }): void;
  /** A session was ended because its owners were lost too often in a short while: it may be what they die of. */
  takeoverLimitReached(name: SessionName): void;
  /** The server ended by itself, or could not be started; `isAtStart` if the session's first one has not answered `initialize`. */
  backendEnded(name: SessionName, end: BackendEnd, details: { readonly isAtStart: boolean }): void;
  /** Nobody uses the session: its backend is ended until somebody does. */
  hibernated(name: SessionName): void;
  /** A lost backend was replaced, or (`isWaking`) a session that hibernated has one again; see `Restoration`. */
  restored(name: SessionName, details: Restoration & { readonly pid: number | undefined }): void;
  /**
   * `text` is what was dropped, for debugging only: it may hold anything. `isAtStart` if the session's first backend has not
   * answered `initialize`.
   */
  dropped(name: SessionName, what: SessionDropReason, text?: Buffer, isAtStart?: boolean): void;
  /** A fault of the gateway itself. */
  failed(name: SessionName, cause: unknown): void;
  /** The store that instances share answers, for the first time or again. */
  clusterJoined(): void;
  /** The store that instances share did not do what it was asked. */
  clusterFailed(cause: unknown): void;
}

/** Tells what failed in a session: a store that is away or full, as such; anything else is a fault of the gateway itself. */
export function reportFailure(observer: SessionObserver, name: SessionName, cause: unknown): void {
  if (cause instanceof StoreUnavailable) observer.clusterFailed(cause);
  else observer.failed(name, cause);
}
