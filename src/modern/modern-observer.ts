import type { BackendEnd, OpenBackend } from '../backend/backend.ts';
import type { Era } from '../protocol/revisions.ts';

/**
 * What was not passed on. `noise`: a line of the server that is no JSON-RPC message. `server_request`: a request of the
 * server, which the modern era does not have; the server gets an error. `late`: it belongs to a request that was cancelled or answered. `log`: a log
 * message that belongs to none or to one of several requests. `unattributed`: any other notification that names no request.
 * `unacknowledged`: a notification of a subscription before it was acknowledged, or of a kind that no subscription has.
 * `foreign`: it came beside another request than the one that it names, or tells of a task of somebody else. `undeliverable`: its client takes no stream, or is gone. `cancellation`: the server did not read, and was not told that a
 * request was cancelled, or a client posted one, which closing the stream stands for. `unplaced`: a notification of a client,
 * while no process of the server is its own.
 */
export type ModernDropReason =
  | 'noise'
  | 'server_request'
  | 'late'
  | 'log'
  | 'unattributed'
  | 'unacknowledged'
  | 'foreign'
  | 'undeliverable'
  | 'cancellation'
  | 'unplaced';

/** Is told what happens to the servers of the modern era, so that it can be logged and counted. Never contents or ids. */
export interface ModernObserver {
  /** Sees the backends that all clients of a server share, and what passes them; absent if nobody wants to. */
  seeBackends?(server: string, open: OpenBackend): OpenBackend;
  /** It was found out, after so many milliseconds, of which era a server is. */
  eraFound(server: string, details: { readonly era: Era; readonly probeMs: number }): void;
  /** It turned out to be one at a URL, where each request has a connection of its own, and an isolation is configured for it. */
  isolationUnused(server: string): void;
  /** Its process answered `server/discover`. */
  ready(
    server: string,
    details: { readonly revisions: readonly string[]; readonly startMs: number; readonly pid: number | undefined },
  ): void;
  /** Its process ended by itself, with so many requests in flight, of which some are run again. */
  ended(
    server: string,
    end: BackendEnd,
    details: { readonly inFlight: number; readonly runAgain: number; readonly dropped: DropCounts },
  ): void;
  /**
   * It was not started, or did not answer as a server of the modern era does; the gateway alone had spoken to it. `isByProbe` if no client waits for it, and who
   * probes the server tells what came of that.
   */
  startFailed(server: string, end: BackendEnd, details: { readonly isByProbe: boolean }): void;
  /**
   * What a process wrote last that did not answer, or ended as the one before that had a client: the gateway alone had spoken
   * to it, and a server that gets credentials of clients has no such process. What came of the start is told elsewhere.
   */
  wroteAtStart(server: string, lastOutput: readonly string[]): void;
  /** It ended so often that it is not started again for a while. */
  crashLoop(server: string, details: { readonly pauseMs: number }): void;
  /** A client did not read its stream and was cut. */
  clientCut(server: string): void;
  /** So much is subscribed to that not all of it is told by other instances. */
  filtersTruncated(server: string): void;
  /** The gateway has ended the process. */
  closed(server: string, details: { readonly dropped: DropCounts }): void;
  /** A fault of the gateway itself. */
  failed(server: string, cause: unknown): void;
  /** `text` is what was dropped, for debugging only: it may hold anything. */
  dropped(server: string, what: ModernDropReason, text?: Buffer): void;
}

/** How often something was dropped. */
export type DropCounts = Readonly<Partial<Record<ModernDropReason, number>>>;
