import { contain } from '../util/boundary.ts';
import { anonymousIdentity, type Identity } from './identity.ts';

/** What is open in the name of somebody. */
export interface CredentialBound {
  readonly identity: Identity;
  /** Its neighbours among all that is held. For the watch alone. */
  before?: CredentialBound | undefined;
  after?: CredentialBound | undefined;
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
   * A list, whose members know each other. Not a `Set` or array: each time that one grows or makes room it leaves a table
   * behind which, once it is old, keeps all that was in it alive until the next full collection, with requests and answers.
   * That was a third of what a request with a token cost.
   */
  #newest: CredentialBound | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** From now on it is looked at, until it is released or its credentials end. */
  hold(held: CredentialBound): void {
    if (held.identity === anonymousIdentity) return;
    held.after = this.#newest;
    if (this.#newest !== undefined) this.#newest.before = held;
    this.#newest = held;
    this.#timer ??= setInterval(() => contain('background', () => this.sweep()), sweepMs).unref();
  }

  /** Nothing of it is open any more. Idempotent. */
  release(held: CredentialBound): void {
    const { before, after } = held;
    if (before !== undefined) before.after = after;
    else if (this.#newest === held) this.#newest = after;
    if (after !== undefined) after.before = before;
    held.before = undefined;
    held.after = undefined;
  }

  /** Looks now. */
  sweep(): void {
    const now = Date.now();
    const ended: CredentialBound[] = [];
    for (let held = this.#newest; held !== undefined; held = held.after) {
      const { expiresAtMs } = held.identity;
      if (expiresAtMs !== undefined && expiresAtMs <= now) ended.push(held);
    }
    for (const held of ended) this.release(held);
    for (const held of ended) held.expire();
  }

  /** Nothing is looked at any more. */
  close(): void {
    clearInterval(this.#timer);
  }
}
