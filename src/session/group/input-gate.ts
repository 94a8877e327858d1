import type { CallTable } from '../../call/call-table.ts';
import { mayRequestInput } from '../../call/rerun.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { Reply } from '../../reply/reply.ts';
import type { ClientPost } from '../session-handle.ts';

/** What turns need of their session. */
export interface InputGateOptions {
  readonly calls: CallTable;
  /** So many requests wait at most (P8). */
  readonly maxWaiting: number;
  /** True if the server tells for which request it asks something. */
  identifiesRequests(): boolean;
  /** The turn of a request that waited has come. */
  onAdmitted(post: ClientPost, reply: Reply): void;
}

interface Waiting {
  readonly post: ClientPost;
  readonly reply: Reply;
  readonly timer: NodeJS.Timeout;
}

/**
 * Turns of a group's requests for which the server may ask its clients something (docs/design.md, D7). Where nothing in a
 * question says for which request it is, there is one such request at a time: so the question is of its client, and no
 * other's (P2, P11). The others wait, first come, first served, or go to another session of the group.
 */
export class InputGate {
  readonly #options: InputGateOptions;
  readonly #waiting: Waiting[] = [];

  constructor(options: InputGateOptions) {
    this.#options = options;
    options.calls.onTaken = ({ method }) => {
      if (mayRequestInput(method)) queueMicrotask(() => this.#next()); // when the answer is on its way
    };
  }

  /** True if a post may go on. Else it is told to go elsewhere, or waits for its turn. */
  admits(post: ClientPost, reply: Reply): boolean {
    const request = post.messages.find(isAsking);
    if (request === undefined || this.#isFree) return true;
    const { turnMs = 0 } = post.group ?? {};
    const busy = (): void => reply.fault('group_busy', request.id ?? null);
    if (turnMs === 0 || this.#waiting.length >= this.#options.maxWaiting) {
      busy();
      return false;
    }
    const leave = (): boolean => {
      clearTimeout(waiting.timer);
      const index = this.#waiting.indexOf(waiting);
      if (index >= 0) this.#waiting.splice(index, 1);
      return index >= 0;
    };
    const waiting = { post, reply, timer: setTimeout(() => leave() && busy(), turnMs) };
    this.#waiting.push(waiting);
    reply.onGone(leave);
    return false;
  }

  /** The session ends: what waits is not run, and the next one may have it. */
  close(): void {
    for (const { post, reply, timer } of this.#waiting.splice(0)) {
      clearTimeout(timer);
      const request = post.messages.find(isAsking) as Message;
      reply.fault('group_busy', request.id ?? null);
    }
  }

  get #isFree(): boolean {
    const { calls, identifiesRequests: tellsRequests } = this.#options;
    return tellsRequests() || !calls.all().some(({ method }) => mayRequestInput(method));
  }

  #next(): void {
    while (this.#waiting.length > 0 && this.#isFree) {
      const { post, reply, timer } = this.#waiting.shift() as Waiting;
      clearTimeout(timer);
      this.#options.onAdmitted(post, reply);
    }
  }
}

const isAsking = ({ kind, method }: Message): boolean => kind === 'request' && mayRequestInput(method as string);
