import type { Reason } from '../../../core/protocol/faults.ts';
import type { EventId } from '../../../core/protocol/wire/event-id.ts';
import type { SessionHandle } from '../../../core/session/session-handle.ts';
import type { Denial, PeerFailure, PeerTransport } from '../peers/peer-request.ts';
import type { ClientReply } from './client-reply.ts';

/** A fault that `isPassing` applies to requests; a stream can wait for its end. If it passes `soon`, a request can, too. */
export interface LookupFault {
  readonly fault: Reason;
  readonly isPassing?: true | 'soon';
}

/**
 * Where a session is, as far as known. `later`: the answer cannot be known now; ask again. With `adopts`, nobody owns the
 * session, and the instance is asked to take it over.
 */
export type SessionLocation =
  | { readonly here: SessionHandle }
  /** The owner and epoch that the record names. */
  | { readonly instance: string; readonly epoch: number; readonly adopts?: true }
  | LookupFault
  | 'later';

/** How the owner of one request is found. */
export interface OwnerRoute {
  /** Whether the session exists and the client may use it. */
  admit(): Promise<'yes' | LookupFault | 'later'>;
  /**
   * Finds the owner of the session, or takes the session over.
   * @param failed the owner of the previous attempt, and how that attempt ended
   */
  locate(failed: FailedAttempt | undefined): Promise<SessionLocation>;
  /** Replays the part of a stream that is in the log; see `replay.ts`. */
  replay(after: EventId, reply: ClientReply): Promise<EventId | 'complete'>;
  /** False if the answers go to a stream elsewhere: a harmless request that ran again would be answered twice there. */
  readonly mayRepeat: boolean;
  /**
   * The reconnection time for priming events of the client's streams, as far as the request tells; undefined for none.
   */
  readonly retryMsOfPriming: number | undefined;
}

/** The services of its instance that all forwarded requests need. */
export interface ForwardingHost extends Pick<PeerTransport, 'ask'> {
  /** How long a POST may wait in total for an owner, in milliseconds. */
  readonly waitMs: number;
  readonly earlyStreamMs: number;
  /** True once the instance has stopped. */
  isClosed(): boolean;
}

/** Why an attempt with an owner ended. */
export type AttemptEnd = 'answered' | Denial | PeerFailure;

/** An owner that did not answer. */
export interface FailedAttempt {
  readonly instance: string;
  readonly epoch: number;
  readonly why: 'moved' | PeerFailure;
  /** How often in a row the owner has failed in this way in this epoch; 0 if it is about to have another answer. */
  readonly times: number;
}
