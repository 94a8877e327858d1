import type { EventId } from '../../protocol/wire/event-id.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import type { MessageToOwner } from '../link/peer-messages.ts';
import type { SendOutcome } from '../link/send-queue.ts';
import type { ClientReply } from './client-reply.ts';

/** Where the session is. `none`: the reply has been answered, so no owner has to be asked. */
export type SessionOwnerLocation =
  | { readonly here: SessionHandle }
  /** The owner and epoch that the record names. With `adopts`, an instance that takes the session over first. */
  | { readonly instance: string; readonly epoch: number; readonly adopts?: true }
  | 'none';

/** The services of its instance that a forwarded request needs. */
export interface ForwardingHost {
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
  /** Sends a message to an owner and routes its replies to this request. `onNumber` is as in `PeerLink.send`. */
  send(
    to: string,
    message: MessageToOwner,
    body?: readonly Buffer[],
    onNumber?: (number: number) => void,
  ): Promise<SendOutcome>;
  /** False if an instance is lost, or its state cannot be known. */
  isAlive(instance: string): Promise<boolean>;
  /** Replays the part of a stream that is in the log; see `replay.ts`. */
  replay(after: EventId, reply: ClientReply): Promise<EventId | 'complete'>;
  /** The name of this instance now. */
  name(): string;
  /** A new number for the request, under which replies find it from now on. */
  renumber(): number;
  /** The request is answered, or its client is gone. */
  onOver(): void;
  readonly earlyStreamMs: number;
  /**
   * The reconnection time for priming events of the client's streams, as far as the request tells; undefined for none.
   */
  readonly retryMsOfPriming: number | undefined;
}

/**
 * Why an attempt with an owner ended. `moved`: the owner says that it does not have the session. `ending`: the owner is
 * about to give up the session, or to get it. `gone`: there is no such instance, or it never received the request,
 * which is new for the next owner. `lost`: the owner may have received the request.
 */
export type AttemptEnd = 'answered' | 'moved' | 'ending' | 'gone' | 'lost';

/** An owner that did not answer. */
export interface FailedAttempt {
  readonly instance: string;
  readonly epoch: number;
  readonly why: 'moved' | 'gone' | 'lost';
  /** How often in a row the owner has denied having the session in this epoch. */
  readonly denials: number;
}
