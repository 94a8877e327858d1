import { everybody, type Identity } from './identity.ts';

/** What is open in the name of somebody. */
export interface Held {
  readonly identity: Identity;
  /** Where the watch has it; undefined while it does not. For nobody else. */
  place: number | undefined;
  /** Their credentials have ended. Called once, unless it was released before. */
  expire(): void;
}

/** The end of credentials is noticed so late at most. */
const sweepMs = 1_000;

/**
 * Ends what is open in somebody's name when their credentials end: they expire, or are withdrawn. Sessions go on; whoever
 * has new credentials goes on with them. One sweep for all, since a timer for each would be a cost for each request.
 */
export class CredentialWatch {
  /**
   * A place that gets free is taken by the last. Not a `Set`: each time that one makes room it leaves a table behind which,
   * being old, keeps all that was in it alive until the next full collection, with requests and answers; that was a third of
   * what a request with a token cost.
   */
  readonly #held: Held[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** From now on it is looked at, until it is released or its credentials end. */
  hold(held: Held): void {
    if (held.identity === everybody) return;
    held.place = this.#held.push(held) - 1;
    this.#timer ??= setInterval(() => this.sweep(), sweepMs).unref();
  }

  /** Nothing of it is open any more. Idempotent. */
  release(held: Held): void {
    const { place } = held;
    if (place === undefined) return;
    held.place = undefined;
    const last = this.#held.pop();
    if (last === undefined || last === held) return;
    this.#held[place] = last;
    last.place = place;
  }

  /** Looks now. */
  sweep(): void {
    const now = Date.now();
    const ended = this.#held.filter(({ identity: { expiresAtMs } }) => expiresAtMs !== undefined && expiresAtMs <= now);
    for (const held of ended) {
      if (held.place === undefined) continue; // the end of another was its end, too
      this.release(held);
      held.expire();
    }
  }

  /** Nothing is looked at any more. */
  close(): void {
    clearInterval(this.#timer);
  }
}
