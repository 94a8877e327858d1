import type { BackendEnd } from '../backend/backend.ts';
import type { CallObserver } from './call-observer.ts';
import type { SessionEnd } from './session-end.ts';

/**
 * What a session could not deliver. `noise`: a line of the server that is no JSON-RPC. `unknown_response`: the server
 * answered what nobody asked, or what was cancelled. `late`: progress of a cancelled call. `unknown_client_response`: the
 * client answered what nobody asked. `undeliverable`: an answer whose client was gone before it could resume, or more than
 * is kept before a session is ready. `oversized`: a message larger than an event may be.
 * `unattributable`: a message to one of a group's clients, and nothing says to which.
 * `history_lost`: events that a client came back for were no longer kept, and it was told.
 */
export type Dropped =
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
export const nameOf = (key: string, server: string): SessionName => ({ server, session: key.slice(0, 8) });

/** Is told what happens to sessions, so that it can be logged and counted. Contents and ids are never passed. */
export interface SessionObserver {
  /** Is told of the calls of sessions; absent if nobody wants to know. */
  readonly calls?: CallObserver | undefined;
  started(name: SessionName, details: { protocolVersion: string; startMs: number; pid: number | undefined }): void;
  ended(
    name: SessionName,
    details: {
      reason: SessionEnd;
      dropped: Partial<Record<Dropped, number>>;
      /** The code of the error with which the server refused `initialize`. */
      errorCode?: number | undefined;
    },
  ): void;
  /** A session was taken over from another instance, with so many calls that it left unanswered. */
  adopted(name: SessionName, details: { pending: number }): void;
  /** A session was ended because its owners were lost too often in a short while: it may be what they die of. */
  wornOut(name: SessionName): void;
  /** The server ended by itself. */
  backendEnded(name: SessionName, end: BackendEnd): void;
  /** Nobody uses the session: its backend is ended until somebody does. */
  hibernated(name: SessionName): void;
  /** A lost backend, or one that hibernated, was replaced; `losses` counts those of the session. */
  restored(name: SessionName, details: { pid: number | undefined; losses: number }): void;
  /** `text` is what was dropped, for debugging only: it may hold anything. */
  dropped(name: SessionName, what: Dropped, text?: Buffer): void;
  /** A fault of the gateway itself. */
  failed(name: SessionName, cause: unknown): void;
  /** The store that instances share answers, for the first time or again. */
  clusterJoined(): void;
  /** The store that instances share did not do what it was asked. */
  clusterFailed(cause: unknown): void;
}
