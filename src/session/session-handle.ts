import type { Message } from '../protocol/message/message.ts';
import type { LogLevel } from '../protocol/modern/log-levels.ts';
import type { EventId } from '../protocol/wire/event-id.ts';
import type { Reply } from '../reply/reply.ts';

/** What one POST brings. */
export interface ClientPost {
  readonly messages: readonly Message[];
  /** True if the body was an array. */
  readonly isBatch: boolean;
  /** An earlier owner of the session may have had it: what is in flight already is not a duplicate. */
  readonly again?: boolean;
  /** Set for requests of modern clients, who share the session of their group (docs/decisions/0027). */
  readonly group?: GroupRequestOptions;
}

/** What a request of a group's client asks of the session beside its message. */
export interface GroupRequestOptions {
  /** The least level of log messages that the client wants of this request; absent if it wants none. */
  readonly logLevel?: LogLevel;
  /** So long it waits for its turn, in milliseconds, until it is told `group_busy`; see `Turns`. */
  readonly turnMs: number;
  /** Of a request for a resource, which listener it is for, and of a ping, who is there; see `HeldResources`. */
  readonly holder?: string;
  /** The resources that this holder goes on listening to. */
  readonly renews?: readonly string[];
  /** What a call is told that asked its client for something; see `Rounds`. */
  readonly round?: InputRound;
}

/** The answers to what a call has asked for, all that its client gives at once. */
export interface InputRound {
  /** Of this round alone. */
  readonly name: string;
  /** Of the answers. */
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
