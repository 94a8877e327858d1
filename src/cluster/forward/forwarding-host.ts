import type { EventId } from '../../protocol/wire/event-id.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import type { MessageToOwner } from '../link/peer-messages.ts';
import type { SendOutcome } from '../link/send-queue.ts';
import type { ClientReply } from './client-reply.ts';

/** Who can answer. `none`: the reply was answered, there is nobody to ask. */
export type SessionOwnerLocation =
  | { readonly here: SessionHandle }
  /** The one that the record names, under the epoch that the record has. */
  | { readonly instance: string; readonly epoch: number }
  | 'none';

/** What an exchange needs of its instance. */
export interface ForwardingHost {
  /** True if there is the session, and the client may use it; waits while that cannot be known. Else answers the reply. */
  admit(reply: ClientReply): Promise<boolean>;
  /**
   * Finds who holds the session, or makes it be held here; waits while that cannot be known. Answers the reply where the
   * session cannot be served.
   * @param failed the owner that was asked last, and what came of it
   */
  locate(reply: ClientReply, failed: FailedAttempt | undefined): Promise<SessionOwnerLocation>;
  /** Sends a letter to an owner, and has its replies brought here. `onNumber` as `Mail.send` has it. */
  send(
    to: string,
    letter: MessageToOwner,
    body?: readonly Buffer[],
    onNumber?: (number: number) => void,
  ): Promise<SendOutcome>;
  /** False if an instance is lost, or nothing can be known of it. */
  isAlive(instance: string): Promise<boolean>;
  /** Reads from the log what is there of a stream; see `replay.ts`. */
  replay(after: EventId, reply: ClientReply): Promise<EventId | 'complete'>;
  /** The name of this instance now. */
  name(): string;
  /** Another number for the exchange, by which letters find it from now on. */
  renumber(): number;
  /** The request is answered, or its client is gone. */
  onOver(): void;
  readonly earlyStreamMs: number;
  /** The reconnection time in the priming events of the client's streams, as far as its request tells; undefined for none. */
  readonly retryMsOfPriming: number | undefined;
  /** The client hears everything on one stream: on no other it is answered, and it may not come back to this one. */
  readonly isOneStream: boolean;
}

/**
 * Why an owner's part in an exchange is over. `moved`: it says that it does not have the session. `ending`: it is about to give the
 * session up, or to get it. `gone`: there is no such instance, or it has never seen the request, which is as new for the
 * next one. `lost`: it may have had the request.
 */
export type AttemptEnd = 'answered' | 'moved' | 'ending' | 'gone' | 'lost';

/** An owner that did not answer. */
export interface FailedAttempt {
  readonly instance: string;
  readonly epoch: number;
  readonly why: 'moved' | 'gone' | 'lost';
  /** How often in a row it has said of this epoch that it does not have the session. */
  readonly denials: number;
}
