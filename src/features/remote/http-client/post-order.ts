import type { Message } from '../../../core/protocol/message/message.ts';
import { methodOf } from '../../../core/protocol/methods/methods.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';

// The order of POSTs to one server: which POST waits for which. Requests overlap, as clients send them.

/** How long a message that the server does not accept delays the messages after it. */
export const maxBlockingMs = 5_000;

/**
 * How long a cancellation waits for the response head of the request that it cancels. On two connections the
 * cancellation could arrive first. A server that sends the head only at the end of the call has read the request by
 * then.
 */
export const maxOvertakeMs = 250;

/** How long a server may still answer a request after its cancellation; then the connection is closed. */
export const abandonAfterMs = 30_000;

/** How long the response to a POST may stay open after its requests were answered elsewhere; then it is cut. */
export const answeredGraceMs = 5_000;

/** How long a server may keep a stream open after its last message; then the connection is closed. */
export const lingerMs = 1_000;

/**
 * Each request may keep a connection until its call is done. The limit is the default number of calls of a session
 * (P8).
 */
const maxOpenPosts = 256;

/** Further connections: the standalone stream, a message that is no request, and streams that are resumed meanwhile. */
export const maxConnections = maxOpenPosts + 8;

/**
 * Returns how long at most the next message waits until the server accepts this one. Requests block nothing, unless they
 * change state. A cancellation blocks nothing either, since it may wait itself.
 */
export function blocksNextForMs({ kind, method, cancels }: Message): number {
  if (cancels !== undefined) return 0;
  if (kind !== 'request') return maxBlockingMs;
  return methodOf(method).isOrdered ? maxOvertakeMs : 0;
}

/** The POSTs of requests that are under way: a server has no more at once than it has connections for (P8). */
export class OpenRequests {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  /**
   * Reserves a slot. If all slots are taken, it waits until one is free, at most `maxBlockingMs`, and resolves to false
   * then. A caller that got a slot has to call `leave`.
   */
  acquire(): true | Promise<boolean> {
    if (this.#count < maxOpenPosts) {
      this.#count += 1;
      return true;
    }
    return new Promise((resolve) => {
      const admit = (): void => {
        limit.clear();
        this.#waiting.delete(admit);
        this.#count += 1;
        resolve(true);
      };
      const limit = new TimeLimit(() => {
        this.#waiting.delete(admit);
        resolve(false);
      }, maxBlockingMs).unref();
      this.#waiting.add(admit);
    });
  }

  /** Counts a POST that is under way already, even over the limit. */
  add(): void {
    this.#count += 1;
  }

  release(): void {
    this.#count -= 1;
    const [next] = this.#waiting;
    if (this.#count < maxOpenPosts) next?.();
  }
}

/** Why a request was not posted: `OpenRequests` had no free slot. */
export const noRoom = {
  reason: 'server_busy',
  detail: `The server has ${maxOpenPosts} open requests, and none of them ended within ${maxBlockingMs} ms.`,
} as const;
