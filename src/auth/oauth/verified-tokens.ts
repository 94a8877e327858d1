import type { BearerToken } from '../bearer-token.ts';
import type { VerifiedToken } from './verify-token.ts';

/** Tokens that are remembered: at most so many times 8 KiB, however many users there are. */
const maxTokens = 4_096;

/**
 * Tokens that were verified, by their SHA-256, so that the next request with one of them costs no signature. The one that was
 * used the longest ago makes room.
 */
export class VerifiedTokens {
  readonly #byHash = new Map<string, VerifiedToken>();

  /** The token as it was verified, if that still holds: it has not expired, and its issuer has the same keys. */
  find({ sha256: key }: BearerToken, nowMs: number): VerifiedToken | undefined {
    const known = this.#byHash.get(key);
    if (known === undefined) return undefined;
    this.#byHash.delete(key);
    if (nowMs >= known.expiresAtMs || known.issuer.current !== known.keys) return undefined;
    this.#byHash.set(key, known);
    return known;
  }

  add({ sha256 }: BearerToken, verified: VerifiedToken): void {
    this.#byHash.set(sha256, verified);
    if (this.#byHash.size <= maxTokens) return;
    const [oldest] = this.#byHash.keys();
    this.#byHash.delete(oldest as string);
  }
}
