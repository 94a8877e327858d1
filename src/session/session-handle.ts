import type { EventId } from '../protocol/event-id.ts';
import type { Message } from '../protocol/message.ts';
import type { Reply } from './reply.ts';

/** What one POST brings. */
export interface Post {
  readonly messages: readonly Message[];
  /** True if the body was an array. */
  readonly isBatch: boolean;
  /** An earlier owner of the session may have had it: what is in flight already is not a duplicate. */
  readonly again?: boolean;
}

/** A session as an endpoint sees it, wherever its backend is. Every method answers the reply, at once or later. */
export interface SessionHandle {
  /** Passes the messages of one POST to the server. */
  post(post: Post, reply: Reply): void;
  /** Opens the standalone GET stream, or continues the stream that `lastEventId` belongs to. */
  listen(lastEventId: EventId | undefined, reply: Reply): void;
  /** Ends the session. */
  remove(reply: Reply): void;
}
