import { WaitingList } from '../../backend/waiting-budget.ts';
import type { Call, SessionCalls } from '../../call/session-calls.ts';
import type { Message } from '../../protocol/message/message.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import { faultAnswer, type Reply } from '../../reply/reply.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import type { ClientPost } from '../session-handle.ts';

/** Options of `InputGate`. */
export interface InputGateOptions {
  readonly calls: SessionCalls;
  /** The most requests that wait at once (P8). Their bytes have a limit, too. */
  readonly maxWaiting: number;
  /** How long a request waits before it fails with `group_busy`, in milliseconds. */
  readonly maxWaitMs: number;
  /** A waiting request may now run. */
  onAdmitted(post: ClientPost, reply: Reply): void;
}

interface QueuedPost {
  readonly post: ClientPost;
  readonly reply: Reply;
  readonly timer: TimeLimit;
}

/**
 * Admits the requests of a group of several users for which the server may request input (docs/design.md, D7). If server
 * requests do not name a related request, only one such request runs at a time. A server request then belongs to that
 * client and no other (P2, P11). The other requests wait in order. The requests of one user pass at once.
 */
export class InputGate {
  readonly #options: InputGateOptions;
  readonly #queue = new WaitingList<QueuedPost>(({ post }) => bytesOf(post));

  constructor(options: InputGateOptions) {
    this.#options = options;
  }

  /** A call of the session is over: the next one may run. */
  noteTaken({ method }: Pick<Call, 'method'>): void {
    if (methodOf(method).mayAsk) queueMicrotask(() => this.#admitNext()); // after the answer was sent
  }

  /** True if a post may run now. Otherwise it waits at the gate, or fails with `group_busy`. */
  admits(post: ClientPost, reply: Reply): boolean {
    const request = post.group?.user && post.messages.find(mayCauseInput);
    if (request === undefined || this.#isOpen) return true;
    const { maxWaiting, maxWaitMs } = this.#options;
    const refuse = (): void => reply.answer(faultAnswer('group_busy', request.id ?? null));
    if (this.#queue.length >= maxWaiting || !this.#queue.hasRoomFor(bytesOf(post))) {
      refuse();
      return false;
    }
    const dequeue = (): boolean => {
      queued.timer.clear();
      return this.#queue.remove((each) => each === queued);
    };
    const queued = { post, reply, timer: new TimeLimit(() => dequeue() && refuse(), maxWaitMs) };
    this.#queue.push(queued);
    reply.onGone(dequeue);
    return false;
  }

  /** The session ends. The requests that wait are not run, so the next session may run them. */
  close(): void {
    for (const { post, reply, timer } of this.#queue.takeAll()) {
      timer.clear();
      const request = post.messages.find(mayCauseInput) as Message;
      reply.answer(faultAnswer('unknown_session', request.id ?? null));
    }
  }

  get #isOpen(): boolean {
    const { calls } = this.#options;
    return calls.areIdentified || !calls.all().some(({ method }) => methodOf(method).mayAsk);
  }

  #admitNext(): void {
    while (this.#queue.length > 0 && this.#isOpen) {
      const { post, reply, timer } = this.#queue.shift() as QueuedPost;
      timer.clear();
      this.#options.onAdmitted(post, reply);
    }
  }
}

const bytesOf = ({ messages }: ClientPost): number => messages.reduce((sum, { text }) => sum + text.length, 0);

const mayCauseInput = ({ kind, method }: Message): boolean => kind === 'request' && methodOf(method).mayAsk;
