import type { Message } from '../../protocol/message/message.ts';

// The order of POSTs to one server: which wait for which. Requests go beside each other, as clients send them.

/** A server that does not accept a message for so long holds up the messages after it no longer. */
export const maxBlockingMs = 5_000;

/**
 * So long a cancellation waits for the head of the answer to what it cancels. On two connections it could arrive first; a
 * server that holds the head back until the call is done has read the request by then.
 */
export const maxOvertakeMs = 250;

/** So long a server may still answer a request that was cancelled; then its connection is cut. */
export const abandonAfterMs = 30_000;

/** So long a server may leave a stream open that has told all; then its connection is cut. */
export const lingerMs = 1_000;

/** Each request may keep a connection until its call is done: no more than this, as a session has calls by default (P8). */
const maxOpenPosts = 256;

/** Beside them: the stream of the server, a message that is no request, and streams that are resumed meanwhile. */
export const maxConnections = maxOpenPosts + 8;

/** What a server does from then on in another way: what is asked next must not come first. */
const stateChangingMethods = new Set(['logging/setLevel', 'resources/unsubscribe']);

/**
 * How long at most those that follow wait for the server to accept what is posted: not for a request, unless it is one that
 * settles something, nor for a cancellation, which may wait itself.
 * @param messages what is posted; none if it is something else
 */
export function blocksNextForMs(messages: readonly Message[]): number {
  if (messages.length === 0) return maxBlockingMs;
  return Math.max(...messages.map(holdMs));
}

function holdMs({ kind, method, cancels }: Message): number {
  if (cancels !== undefined) return 0;
  if (kind !== 'request') return maxBlockingMs;
  return stateChangingMethods.has(method ?? '') ? maxOvertakeMs : 0;
}

/** The POSTs of requests that are under way: a server has no more at once than it has connections for (P8). */
export class OpenRequests {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  /** Whether one more may go; if there are too many, so soon as others have ended, and not after `maxHoldMs`. Who may go has to `leave`. */
  enter(): true | Promise<boolean> {
    if (this.#count < maxOpenPosts) {
      this.#count += 1;
      return true;
    }
    return new Promise((resolve) => {
      const admit = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(admit);
        this.#count += 1;
        resolve(true);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(admit);
        resolve(false);
      }, maxBlockingMs).unref();
      this.#waiting.add(admit);
    });
  }

  /** One that is under way already, however many there are. */
  add(): void {
    this.#count += 1;
  }

  leave(): void {
    this.#count -= 1;
    const [next] = this.#waiting;
    if (this.#count < maxOpenPosts) next?.();
  }
}

/** Why a request was not posted: there was no room among `OpenRequests`. */
export const noRoom = {
  reason: 'server_busy',
  detail: `The server has ${maxOpenPosts} open requests, and none of them ended within ${maxBlockingMs} ms.`,
} as const;
