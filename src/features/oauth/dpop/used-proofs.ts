import { BoundedMap } from '../../../core/util/bounded-map.ts';
import { nonceLifetimeMs } from './nonces.ts';

/**
 * How many used proofs are remembered, with about 150 bytes each, however many requests clients send (P8). Beyond this
 * number, older nonces are no longer accepted.
 */
const maxProofs = 100_000;

/** The proofs that instances have accepted, in the store that they share. */
export interface SharedProofs {
  /**
   * Returns for how many milliseconds the store has answered without a break; 0 while it does not answer. A store that
   * was away may have lost earlier uses.
   */
  healthyForMs(): number;
  /**
   * Notes the use of a proof for all instances.
   * @returns true if this is the first use; undefined if the store did not answer
   */
  use(name: string, forMs: number): Promise<boolean | undefined>;
}

/**
 * The proofs that this instance has accepted, until their nonces expire. If there are too many, the oldest entry is
 * dropped, and with it every nonce that is not newer. A replay is then refused because of its nonce, and a client gets a
 * new nonce.
 */
export class UsedProofs {
  readonly #madeAt: BoundedMap<string, number>;
  #oldestNonceMs = 0;

  constructor(max = maxProofs) {
    this.#madeAt = new BoundedMap(max);
  }

  /** True if every use of proofs with a nonce of this time is remembered. */
  remembers(nonceMadeAtMs: number): boolean {
    return nonceMadeAtMs > this.#oldestNonceMs;
  }

  /**
   * Notes the use of a proof.
   * @returns true if this is the first use
   */
  use(name: string, nonceMadeAtMs: number, nowMs: number): boolean {
    if (this.#madeAt.has(name)) return false;
    this.#dropExpired(nowMs);
    const dropped = this.#madeAt.makeRoomFor(name);
    if (dropped !== undefined) this.#oldestNonceMs = Math.max(this.#oldestNonceMs, dropped[1]);
    this.#madeAt.set(name, nonceMadeAtMs);
    return true;
  }

  /** Drops at most two entries, so that no request pays for many. Each use adds only one. */
  #dropExpired(nowMs: number): void {
    let count = 0;
    for (const [name, madeAtMs] of this.#madeAt) {
      if (count++ === 2 || nowMs - madeAtMs <= nonceLifetimeMs) return;
      this.#madeAt.delete(name);
    }
  }
}
