import type { BackendEnd } from '../backend/backend.ts';
import type { Era } from '../protocol/revisions.ts';

/**
 * Why a message was not passed on.
 *
 * `noise`: a line of the server that is no JSON-RPC message. `server_request`: a request of the server, which the
 * modern era does not have; the server gets an error. `late`: a message for a request that was cancelled or answered.
 * `log`: a log message that belongs to none or to one of several requests. `unattributed`: any other notification that
 * names no request. `unacknowledged`: a notification of a subscription before its acknowledgement, or of a kind that no
 * subscription has. `foreign`: a message that came beside another request than the one that it names, or that is about
 * a task of somebody else. `undeliverable`: its client takes no stream, or has disconnected. `cancellation`: the
 * server's input was full, so a cancellation was not sent; or a client posted a cancellation, where closing the stream
 * is what cancels. `unplaced`: a client's notification without a process to go to.
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

/** How many messages were dropped, by reason. */
export type DropCounts = Readonly<Partial<Record<ModernDropReason, number>>>;

/** An event of a modern server, or of the search for its era. Events carry no ids, and contents only for debugging. */
export type SharedServerEvent =
  /** A probe has found the era of a server. */
  | { readonly type: 'era-found'; readonly server: string; readonly era: Era; readonly probeMs: number }
  /**
   * An isolation is configured for a server at a URL, where it has no effect: each request has a connection of its own.
   */
  | { readonly type: 'isolation-unused'; readonly server: string }
  /** A process answered `server/discover`. */
  | {
      readonly type: 'shared-server-ready';
      readonly server: string;
      readonly revisions: readonly string[];
      readonly startMs: number;
      readonly pid: number | undefined;
    }
  /** A process ended by itself. `inFlight` counts its requests, `runAgain` those that are run again. */
  | {
      readonly type: 'shared-server-ended';
      readonly server: string;
      readonly end: BackendEnd;
      readonly inFlight: number;
      readonly runAgain: number;
      readonly dropped: DropCounts;
    }
  /**
   * A process was not started, or did not answer like a modern server. Only the gateway had spoken to it. `isByProbe`:
   * no client waits for the start, and the caller of the probe reports the outcome.
   */
  | {
      readonly type: 'shared-start-failed';
      readonly server: string;
      readonly end: BackendEnd;
      readonly isByProbe: boolean;
    }
  /**
   * The last output of a probe process that did not answer, or that ended like the process of a session before it. It
   * is safe to log: the process served no client, and servers that get credentials of clients have no such process. The
   * failed start itself is reported elsewhere.
   */
  | { readonly type: 'probe-output'; readonly server: string; readonly lastOutput: readonly string[] }
  /** The server ended so often that it is not started again for a while. */
  | { readonly type: 'shared-crash-loop'; readonly server: string; readonly pauseMs: number }
  /** A client did not read its stream and was disconnected. */
  | { readonly type: 'client-cut'; readonly server: string }
  /** Too much is subscribed to: other instances do not report changes of all of it. */
  | { readonly type: 'filters-truncated'; readonly server: string }
  /** The gateway has ended the process. */
  | { readonly type: 'shared-server-closed'; readonly server: string; readonly dropped: DropCounts }
  /** A fault of the gateway itself. */
  | { readonly type: 'shared-server-failed'; readonly server: string; readonly cause: unknown }
  /** A message was dropped. `text` is the message, for debugging only: it may hold anything. */
  | {
      readonly type: 'shared-message-dropped';
      readonly server: string;
      readonly reason: ModernDropReason;
      readonly text: Buffer | undefined;
    };
