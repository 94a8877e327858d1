import { contain } from '../util/boundary.ts';
import { anonymousIdentity, type Identity } from './identity.ts';

/** A request, stream or connection that is open under an identity. */
export interface CredentialBound {
  readonly identity: Identity;
  /** The neighbours in the list of the watch. Only the watch uses them. */
  before?: CredentialBound | undefined;
  after?: CredentialBound | undefined;
  /** Called once when the credentials have expired, unless the member was released before. */
  expire(): void;
}

/** How late the end of credentials is noticed at most. */
const sweepMs = 1_000;

/**
 * Ends open requests, streams and connections when their credentials expire or are withdrawn. Sessions continue, and a
 * client with new credentials can go on using them. One sweep serves all members, since a timer for each would be a
 * cost for each request.
 */
export class CredentialWatch {
  /**
   * The newest member of a linked list. A `Set` or array leaves an old table behind each time it grows or shrinks. An
   * old table keeps all of its members, with their requests and answers, alive until the next full garbage collection.
   * That was a third of the cost of a request with a token.
   */
  #newest: CredentialBound | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** Watches a member until it is released or its credentials end. */
  hold(member: CredentialBound): void {
    if (member.identity === anonymousIdentity) return;
    member.after = this.#newest;
    if (this.#newest !== undefined) this.#newest.before = member;
    this.#newest = member;
    this.#timer ??= setInterval(() => contain('background', () => this.sweep()), sweepMs).unref();
  }

  /** Stops watching a member, which is no longer open. Idempotent. */
  release(member: CredentialBound): void {
    const { before, after } = member;
    if (before !== undefined) before.after = after;
    else if (this.#newest === member) this.#newest = after;
    if (after !== undefined) after.before = before;
    member.before = undefined;
    member.after = undefined;
  }

  /** Ends all members whose credentials have expired. */
  sweep(): void {
    const now = Date.now();
    const expired: CredentialBound[] = [];
    for (let member = this.#newest; member !== undefined; member = member.after) {
      member.identity.recheck?.();
      const { expiresAtMs } = member.identity;
      if (expiresAtMs !== undefined && expiresAtMs <= now) expired.push(member);
    }
    for (const member of expired) this.release(member);
    for (const member of expired) member.expire();
  }

  /** Stops the sweeps. */
  close(): void {
    clearInterval(this.#timer);
  }
}
