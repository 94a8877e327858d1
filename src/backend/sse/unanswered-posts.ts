import type { RequestId } from '../../protocol/faults.ts';
import { answeredIn } from '../../protocol/ids/answer-ids.ts';
import type { Message } from '../../protocol/message/message.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import { Canceller } from '../http-client/canceller.ts';
import { abandonAfterMs } from '../http-client/post-order.ts';

/** How long the response to a POST may stay open after the server has answered its request; then it is aborted. */
const graceMs = 5_000;

/** A POST that the server has not answered. */
export interface UnansweredPost {
  /** Aborts the POST: nobody waits for it any more. */
  readonly canceller: Canceller;
  /** The unanswered requests of the POST. */
  readonly unanswered: ReadonlySet<RequestId>;
  /** Resolves when all of them are answered. */
  readonly answered: Promise<void>;
  /** The server may have seen the POST. Set by the code that posts. */
  isBegun: boolean;
  /** Resolves when the server has answered the POST, or never will. Never rejects. */
  accepted: Promise<unknown>;
}

interface Tracked extends UnansweredPost {
  readonly unanswered: Set<RequestId>;
  resolveAnswered(): void;
  timer?: TimeLimit;
}

/**
 * The POSTs of requests that the server has not answered. Most servers answer a POST with 202 at once, those of the
 * Java SDK only when the call is done. So a POST may take as long as its call, and no longer.
 */
export class UnansweredPosts {
  readonly #byId = new Map<RequestId, Tracked>();

  /** @param ids the requests of the POST: a batch has several, a notification none */
  add(ids: readonly RequestId[], post: (post: UnansweredPost) => Promise<unknown>): UnansweredPost {
    let resolveAnswered = (): void => undefined;
    const answered = new Promise<void>((resolve) => {
      resolveAnswered = resolve;
    });
    const tracked: Tracked = {
      canceller: new Canceller(),
      unanswered: new Set(ids),
      answered,
      resolveAnswered,
      accepted: answered,
      isBegun: false,
    };
    for (const id of ids) this.#byId.set(id, tracked);
    tracked.accepted = post(tracked).then(() => {
      tracked.timer?.clear();
      for (const id of tracked.unanswered) if (this.#byId.get(id) === tracked) this.#byId.delete(id);
    });
    return tracked;
  }

  /** Notes messages that came on the stream or in the response to a POST. */
  noteAnswers(messages: readonly Message[]): void {
    if (this.#byId.size > 0) for (const id of answeredIn(messages, this.#byId)) this.#noteAnswer(id);
  }

  /**
   * Returns the open POST of a cancelled request, if there is one. It is aborted at once if not begun, else after a
   * while.
   */
  cancel(id: RequestId): UnansweredPost | undefined {
    const post = this.#byId.get(id);
    if (post?.isBegun === false) post.canceller.abort();
    else if (post !== undefined) abortAfter(post, abandonAfterMs);
    return post;
  }

  #noteAnswer(id: RequestId): void {
    const post = this.#byId.get(id);
    if (post === undefined) return;
    this.#byId.delete(id);
    post.unanswered.delete(id);
    if (post.unanswered.size > 0) return;
    abortAfter(post, graceMs);
    post.resolveAnswered();
  }
}

function abortAfter(post: Tracked, ms: number): void {
  post.timer?.clear();
  post.timer = new TimeLimit(() => post.canceller.abort(), ms);
}
