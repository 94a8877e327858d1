import { BoundedMap } from '../../util/bounded-map.ts';
import type { BearerToken } from '../bearer-token.ts';
import type { VerifiedToken } from './verify-token.ts';

/** How many tokens are remembered, each of at most 8 KiB, however many users there are. */
const maxTokens = 4_096;

/**
 * Verified tokens by their SHA-256, so that the next request with the same token needs no check of a signature. The
 * least recently used token is dropped first.
 */
export class VerifiedTokens {
  readonly #byHash = new BoundedMap<string, VerifiedToken>(maxTokens);

  /** Finds a verified token that is still valid: it has not expired, and its issuer has the same keys. */
  find({ sha256: key }: BearerToken, nowMs: number): VerifiedToken | undefined {
    const known = this.#byHash.get(key);
    if (known === undefined) return undefined;
    if (nowMs >= known.expiresAtMs || !known.isCurrent()) {
      this.#byHash.delete(key);
      return undefined;
    }
    this.#byHash.set(key, known); // the newest one now
    return known;
  }

  add({ sha256 }: BearerToken, verified: VerifiedToken): void {
    this.#byHash.set(sha256, verified);
  }
}
