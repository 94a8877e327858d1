import { HeldBytes } from '../../util/held-bytes.ts';
import type { Gate } from '../in-order.ts';
import { maxWaitingBytes } from '../waiting-budget.ts';

/**
 * The results that an interceptor keeps until something outside of the gateway has answered. Everything else of the server
 * goes on meanwhile, but the server is not read while too many bytes wait (P8).
 */
export class HeldResults {
  readonly #gate: Gate;
  readonly #bytes = new HeldBytes();
  #count = 0;
  #isHolding = false;

  constructor(gate: Gate) {
    this.#gate = gate;
  }

  get areNone(): boolean {
    return this.#count === 0;
  }

  /** Keeps a result. Call the returned function once, when it is passed on. */
  add(bytes: number): () => void {
    this.#count += 1;
    this.#note(bytes);
    return () => {
      this.#count -= 1;
      this.#note(-bytes);
    };
  }

  /** Nobody gets any of them. */
  clear(): void {
    this.#bytes.bytes = 0;
  }

  #note(change: number): void {
    this.#bytes.bytes = Math.max(0, this.#bytes.bytes + change);
    const isFull = this.#bytes.bytes > maxWaitingBytes;
    if (isFull === this.#isHolding) return;
    this.#isHolding = isFull;
    if (isFull) this.#gate.hold();
    else this.#gate.release();
  }
}
