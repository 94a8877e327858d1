import type { Reason } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
import { faultAnswer, type Reply } from '../../reply/reply.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import type { Streams } from '../events/streams.ts';
import type { ClientPost } from '../session-handle.ts';

/**
 * How long a session waits for a client that has closed its only stream. Official clients open another session then,
 * and an EventSource comes back within a few seconds.
 */
export const oneStreamLeftMs = 5_000;

/** Options of `ListenerGate`. */
export interface ListenerGateOptions {
  readonly streams: Streams;
  /** The most POSTs that wait at once (P8). */
  readonly maxWaiting: number;
  /** The client listens, or a POST needs no listener. */
  onAdmitted(post: ClientPost, reply: Reply): void;
}

interface WaitingPost {
  readonly post: ClientPost;
  readonly reply: Reply;
}

/**
 * Admits the requests of a client that gets everything on one stream. While the client does not listen, they wait for
 * its return. After `oneStreamLeftMs` without a stream they fail, because their answers could not reach a client that
 * has not noticed the end of its stream. They have not reached the server by then. POSTs keep their order.
 */
export class ListenerGate {
  readonly #options: ListenerGateOptions;
  #waiting: WaitingPost[] = [];
  #timer: TimeLimit | undefined;

  constructor(options: ListenerGateOptions) {
    this.#options = options;
    options.streams.onListening = () => this.#admitAll();
  }

  /** True if a POST may run now. Otherwise it waits for the client's stream, or fails with `no_listener`. */
  admits(post: ClientPost, reply: Reply): boolean {
    const { streams, maxWaiting } = this.#options;
    const request = post.messages.find(isRequest);
    const isOrdered = this.#waiting.length > 0;
    if (streams.hasGet || (request === undefined && !isOrdered)) return true;
    const waitMs = oneStreamLeftMs - streams.unreadGetMs;
    if (this.#waiting.length >= maxWaiting) reply.answer(faultAnswer('too_many_calls', request?.id ?? null));
    else if (waitMs <= 0 && !isOrdered) refuse({ post, reply }, 'no_listener');
    else {
      this.#waiting.push({ post, reply });
      this.#timer ??= new TimeLimit(() => this.#giveUp(), waitMs);
    }
    return false;
  }

  /** The session ends. The waiting requests have not reached its server. */
  close(reason: Reason): void {
    for (const waiting of this.#takeAll()) refuse(waiting, reason);
  }

  #admitAll(): void {
    for (const { post, reply } of this.#takeAll()) if (!reply.isGone) this.#options.onAdmitted(post, reply);
  }

  /** A message that needs no answer still counts for the server. */
  #giveUp(): void {
    for (const waiting of this.#takeAll()) {
      const { post, reply } = waiting;
      if (post.messages.some(isRequest)) refuse(waiting, 'no_listener');
      else this.#options.onAdmitted(post, reply);
    }
  }

  #takeAll(): WaitingPost[] {
    this.#timer?.clear();
    this.#timer = undefined;
    return this.#waiting.splice(0);
  }
}

const isRequest = ({ kind }: Message): boolean => kind === 'request';

function refuse({ post, reply }: WaitingPost, reason: Reason): void {
  if (!reply.isGone) reply.answer(faultAnswer(reason, post.messages.find(isRequest)?.id ?? null));
}
