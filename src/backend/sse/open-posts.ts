import type { RequestId } from '../../protocol/faults.ts';
import { idsOf, messagesIn } from '../web/messages.ts';
import { abandonAfterMs } from '../web/post-limits.ts';

/** The POST of a request that the server has not answered. */
interface OpenPost {
  /** The server has answered it, or never will. Never rejects. */
  readonly taken: Promise<unknown>;
  /** Nobody waits for it any more. */
  giveUp(): void;
  timer?: NodeJS.Timeout;
}

/**
 * The POSTs of requests that the server has not answered. Most servers answer one with 202 at once, those of the Java SDK when
 * the call is done: it may take as long as its call, and no longer.
 */
export class OpenPosts {
  readonly #posts = new Map<RequestId, OpenPost>();
  readonly #graceMs: number;

  /** @param graceMs how long a server may take to answer the POST of a request that it has answered on its stream */
  constructor(graceMs: number) {
    this.#graceMs = graceMs;
  }

  get count(): number {
    return this.#posts.size;
  }

  /** Those of one POST: a batch has several. */
  add(ids: readonly RequestId[], { taken, giveUp }: OpenPost): void {
    const posts = ids.map((id) => ({ id, post: { taken, giveUp } as OpenPost }));
    for (const { id, post } of posts) this.#posts.set(id, post);
    void taken.then(() => {
      for (const { id, post } of posts) {
        clearTimeout(post.timer);
        if (this.#posts.get(id) === post) this.#posts.delete(id);
      }
    });
  }

  /** The stream has brought these. */
  seen(messages: readonly Uint8Array[]): void {
    if (this.#posts.size === 0) return;
    for (const text of messages) for (const id of idsOf(messagesIn(text), 'response')) this.#limit(id, this.#graceMs);
  }

  /** The client does not wait for this any more. Resolves when the server has taken it, which can be now. */
  cancel(id: RequestId): Promise<unknown> | undefined {
    this.#limit(id, abandonAfterMs);
    return this.#posts.get(id)?.taken;
  }

  #limit(id: RequestId, ms: number): void {
    const post = this.#posts.get(id);
    if (post !== undefined) post.timer ??= setTimeout(post.giveUp, ms);
  }
}
