import { everybody, type Identity } from './identity.ts';

/** What is open in the name of somebody. */
interface Held {
  readonly identity: Identity;
  /** Their credentials have ended. */
  end(): void;
}

/** The end of credentials is noticed so late at most. */
const sweepMs = 1_000;

/**
 * Ends what is open in somebody's name when their credentials end: they expire, or are withdrawn. Sessions go on; whoever
 * has new credentials goes on with them. One sweep for all, since a timer for each would be a cost for each request.
 */
export class CredentialWatch {
  readonly #held = new Set<Held>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param end called once, unless what is returned was called before
   * @returns to be called when nothing is open any more
   */
  hold(identity: Identity, end: () => void): () => void {
    if (identity === everybody) return () => undefined;
    const held = { identity, end };
    this.#held.add(held);
    this.#timer ??= setInterval(() => this.sweep(), sweepMs).unref();
    return () => void this.#held.delete(held);
  }

  /** Looks now. */
  sweep(): void {
    const now = Date.now();
    for (const held of this.#held) {
      const { expiresAtMs } = held.identity;
      if (expiresAtMs === undefined || expiresAtMs > now) continue;
      this.#held.delete(held);
      held.end();
    }
  }

  /** Nothing is looked at any more. */
  close(): void {
    clearInterval(this.#timer);
  }
}
