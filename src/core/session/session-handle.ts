import type { RequestId } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import type { LogLevel } from '../protocol/modern/log-levels.ts';
import type { Principal } from '../protocol/principal.ts';
import type { EventId } from '../protocol/wire/event-id.ts';
import type { Reply } from '../reply/reply.ts';

/** The contents of one POST. */
export interface ClientPost {
  readonly messages: readonly Message[];
  /** True if the body was an array. */
  readonly isBatch: boolean;
  /**
   * True if an earlier owner may have received this POST. Requests that are already in flight are then no duplicates.
   */
  readonly again?: boolean;
  /** Set for requests of modern clients, who share the session of their group (docs/decisions/0027). */
  readonly group?: GroupRequestOptions;
}

/** The id of the request that an error of the whole post answers; null for none. */
export const postId = ({ messages }: ClientPost): RequestId | null =>
  messages.find(({ kind }) => kind === 'request')?.id ?? null;

/** Options of a request from a group's client. */
export interface GroupRequestOptions {
  /** The lowest level of log messages that the client wants for this request; absent if it wants none. */
  readonly logLevel?: LogLevel;
  /**
   * The user of the request. Its calls may have to wait for those of other users; see `InputGate`. Absent if all requests
   * of the session are of one user.
   */
  readonly user?: Principal;
  /** The listener that a resource request or ping is for; see `SubscriptionLeases`. */
  readonly holder?: string;
  /** What a ping does with the leases of the holder. It renews them unless this is set. */
  readonly leases?: 'begin' | 'end';
  /** True to end the session now, unless it has calls. The post has no messages. */
  readonly endsUnused?: boolean;
  /**
   * The call of this id is read on with by a later request: its client has a request state, or it is a task. The owner
   * keeps the call without a reader. The post has no messages.
   */
  readonly keeps?: RequestId;
  /** The client's input for a call that asked for some. */
  readonly round?: InputRound;
}

/** The answers that a client gives at once to the requests of a call. */
export interface InputRound {
  /** The call that asked. */
  readonly call: RequestId;
  /** Unique to this round. */
  readonly name: string;
  /** The digest of the answers. */
  readonly digest: string;
}

/** A session as an endpoint sees it, wherever its backend is. Every method answers the reply, at once or later. */
export interface SessionHandle {
  /** Passes the messages of one POST to the server. */
  post(post: ClientPost, reply: Reply): void;
  /** Opens the standalone GET stream, or continues the stream that `lastEventId` belongs to. */
  listen(lastEventId: EventId | undefined, reply: Reply): void;
  /** Ends the session. */
  remove(reply: Reply): void;
}
