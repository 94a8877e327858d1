import type { Answer } from '../../core/call/answer.ts';
import type { RerunPolicy } from '../../core/call/rerun.ts';
import type { CredentialMarks } from '../../core/keys/credential-marks.ts';
import type { RequestClient } from '../../core/protocol/http/forwarded-headers.ts';
import type { ByteRange } from '../../core/protocol/json.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { Reply } from '../../core/reply/reply.ts';

/** What the tasks of the calls to one server need. */
export interface CallTasksOptions {
  /** A call becomes a task after this many milliseconds. */
  readonly afterMs: number;
  readonly marks: CredentialMarks;
  readonly commitAfterMs: number;
  readonly slowReaderMs: number;
  /** The name of the server. */
  readonly server: string;
  /** Decides which calls are sent again after a loss. */
  readonly reruns: RerunPolicy;
  /**
   * True if the server has a process at each of several instances, and knows only the tasks that it began there. The
   * gateway then makes the tasks in its place, which all instances know.
   */
  readonly isLocalToInstance: boolean;
}

/** Sends calls to the server, for the client of one request. */
export interface CallSender {
  send(request: Message, answer: Answer): void;
  /** Reads on with a call at a point of `Answer.pointOf`; undefined if each call depends on its instance. */
  readonly follow: ((request: Message, answer: Answer, point: string) => void) | undefined;
}

/** The tasks that a subscription names, and where its text does so. */
export type ListedTasks = readonly { readonly id: unknown; readonly range: ByteRange }[];

/** Makes tasks of the calls to one server, and answers what clients ask about them (SEP-2663). */
export interface CallTasks {
  /** True if the gateway itself answers this request: it is about a task of the gateway, or the server has no tasks. */
  serves(request: Message, era: Era): boolean;
  /** Answers a request about a task. If its instance is gone, this one may go on with its call. */
  serve(request: Message, answer: Answer, asker: RequestClient, sender: CallSender): Promise<void>;
  /** True if this call becomes a task when its answer does not come in time. */
  mayMake(call: Message): boolean;
  /** Sends a call that may become a task. */
  call(call: Message, answer: Answer, asker: RequestClient, sender: CallSender): Promise<void> | undefined;
  /** The tasks that a subscription names; undefined if none of them is one of the gateway. */
  tasksOf(request: Message): ListedTasks | undefined;
  /**
   * Adds news of the gateway's tasks to a subscription. Its server gets the subscription without these tasks.
   * @param listed what `tasksOf` has found
   */
  listen(
    request: Message,
    listed: ListedTasks,
    answer: Answer,
    reply: Reply,
    asker: RequestClient,
    sender: CallSender,
  ): Promise<void>;
  /** Declares tasks in the answer to `server/discover`. */
  advertise(response: Message): Message;
}
