import type { BackendEnd } from '../backend/backend.ts';
import type { BadAnswer } from '../protocol/message/message.ts';
import type { Era } from '../protocol/revisions.ts';

/**
 * Why a message was not passed on.
 *
 * `noise`: a line of the server that is no JSON-RPC message. `bad_response`: an answer that is no valid message; its
 * request ended with an error. `server_request`: a request from the server, which the
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
  | 'bad_response'
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

/**
 * An option that has no effect. `share`: on modern clients at a URL, because each request has a connection of its own.
 * `share-of-sessions`: on legacy sessions at a URL, because each of them has its own session there. `affinity`: on a
 * modern server, because it keeps nothing between requests.
 */
export type UnusedOption = 'share' | 'share-of-sessions' | 'affinity';

/** An event of a modern server, or of the search for its era. Events carry no ids, and contents only for debugging. */
export type SharedServerEvent = Readonly<
  /** A probe has found the era of a server. */
  | { type: 'era-found'; server: string; era: Era; probeMs: number }
  /** A session has found that the server speaks this era. */
  | { type: 'era-seen'; server: string; era: Era }
  /** A configured option has no effect on this server, now that its era is known. */
  | { type: 'option-unused'; server: string; option: UnusedOption }
  /** A modern client called a tool of a legacy server, in a process for this request alone. Once for each server. */
  | { type: 'process-per-request'; server: string }
  /** A process answered `server/discover`. */
  | {
      type: 'shared-server-ready';
      server: string;
      revisions: readonly string[];
      startMs: number;
      pid: number | undefined;
    }
  /** A process ended by itself. `inFlight` counts its requests, `runAgain` those that are run again. */
  | {
      type: 'shared-server-ended';
      server: string;
      end: BackendEnd;
      inFlight: number;
      runAgain: number;
      dropped: DropCounts;
    }
  /**
   * A process was not started, or did not answer like a modern server. Only the gateway had spoken to it. `isByProbe`:
   * no client waits for the start, and the caller of the probe reports the outcome.
   */
  | { type: 'shared-start-failed'; server: string; end: BackendEnd; isByProbe: boolean }
  /**
   * The last output of a probe process that did not answer, or that ended like the process of a session before it. It
   * is safe to log: the process served no client, and servers that get credentials of clients have no such process. The
   * failed start itself is reported elsewhere.
   */
  | { type: 'probe-output'; server: string; lastOutput: readonly string[] }
  /** The server ended so often that it is not started again for a while. */
  | { type: 'shared-crash-loop'; server: string; pauseMs: number }
  /** A client did not read its stream and was disconnected. */
  | { type: 'client-cut'; server: string }
  /** Too much is subscribed to: other instances do not report changes of all of it. */
  | { type: 'filters-truncated'; server: string }
  /** The gateway has ended the process. */
  | { type: 'shared-server-closed'; server: string; dropped: DropCounts }
  /** A fault of the gateway itself. */
  | { type: 'shared-server-failed'; server: string; cause: unknown }
  /**
   * A message was dropped. `text` is the message, for debugging only: it may hold anything. `count`: how many such
   * messages there were, 1 by default.
   */
  | {
      type: 'shared-message-dropped';
      server: string;
      reason: ModernDropReason;
      count?: number;
      text: Buffer | undefined;
      /** Set for `bad_response`. */
      answer?: BadAnswer | undefined;
    }
>;
