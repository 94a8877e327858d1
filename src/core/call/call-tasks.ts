import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Principal } from '../protocol/principal.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Reply } from '../reply/reply.ts';
import type { Answer } from './answer.ts';

/** Who asks about a task. */
export interface TaskAsker {
  readonly principal: Principal;
  /** The headers of the client's request that are forwarded to the server. */
  readonly forwarded?: ForwardedHeaders | undefined;
}

/** Makes tasks of the calls to one server, and answers what clients ask about them (SEP-2663). */
export interface CallTasks {
  /** True if the gateway itself answers this request: it is about a task of the gateway, or the server has no tasks. */
  serves(request: Message, era: Era): boolean;
  /** Answers a request about a task. */
  serve(request: Message, answer: Answer, asker: TaskAsker): Promise<void>;
  /** True if this call becomes a task when its answer does not come in time. */
  mayMake(call: Message): boolean;
  /**
   * Sends a call that may become a task.
   * @param send sends a request to the server, whose answer is that of the call
   */
  call(call: Message, answer: Answer, asker: TaskAsker, send: (request: Message) => void): Promise<void>;
  /** True if this subscription names tasks of the gateway. */
  mayTell(request: Message): boolean;
  /**
   * Adds news of the gateway's tasks to a subscription.
   * @param send sends the subscription to the server, without these tasks
   */
  listen(
    request: Message,
    answer: Answer,
    reply: Reply,
    asker: TaskAsker,
    send: (request: Message) => void,
  ): Promise<void>;
  /** Declares tasks in the answer to `server/discover`. */
  advertise(response: Message): Message;
}
