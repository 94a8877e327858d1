import type { EventId } from '../../protocol/wire/event-id.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import type { Denial, PeerFailure, PeerTransport } from '../peers/peer-request.ts';
import type { ClientReply } from './client-reply.ts';
import type { RetryLookupOptions } from './retry-lookup.ts';

/** Where the session is. `none`: the reply has been answered, so no owner has to be asked. */
export type SessionOwnerLocation =
  | { readonly here: SessionHandle }
  /** The owner and epoch that the record names. With `adopts`, an instance that takes the session over first. */
  | { readonly instance: string; readonly epoch: number; readonly adopts?: true }
  | 'none';

/** The services of its instance that a forwarded request needs. */
export interface ForwardingHost extends Pick<PeerTransport, 'ask'>, RetryLookupOptions {
  /**
   * True if the session exists and the client may use it. Waits while that cannot be known. Answers the reply
   * otherwise.
   */
  admit(reply: ClientReply): Promise<boolean>;
  /**
   * Finds the owner of the session, or takes the session over. Waits while neither is possible. Answers the reply if
   * the session cannot be served.
   * @param failed the owner of the previous attempt, and how that attempt ended
   */
  locate(reply: ClientReply, failed: FailedAttempt | undefined): Promise<SessionOwnerLocation>;
  /** Replays the part of a stream that is in the log; see `replay.ts`. */
  replay(after: EventId, reply: ClientReply): Promise<EventId | 'complete'>;
  /** The request is answered, or its client is gone. */
  onOver(): void;
  /** False if the answers go to a stream elsewhere: a harmless request that ran again would be answered twice there. */
  readonly mayRepeat: boolean;
  readonly earlyStreamMs: number;
  /**
   * The reconnection time for priming events of the client's streams, as far as the request tells; undefined for none.
   */
  readonly retryMsOfPriming: number | undefined;
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
