import { reportFault, type Seam } from '../util/boundary.ts';

/** Stops and starts the reading from one peer. */
export interface Gate {
  /** Stops reading from the peer: a large text is being parsed. */
  hold(): void;
  /** Continues reading: every text has been delivered. */
  release(): void;
}

/**
 * Delivers the texts of one peer in order. A large text is first parsed in several turns of the event loop, and the
 * texts behind it wait. A fault is reported, and ends nothing.
 */
export class OrderedDelivery {
  readonly #seam: Seam;
  readonly #gate: Gate;
  #last: Promise<void> | undefined;

  constructor(seam: Seam, gate: Gate) {
    this.#seam = seam;
    this.#gate = gate;
  }

  /** True while a text waits. */
  get isBusy(): boolean {
    return this.#last !== undefined;
  }

  /** Resolves when every text taken up to now has been delivered. */
  get idle(): Promise<void> {
    return this.#last ?? Promise.resolve();
  }

  /**
   * Delivers these texts, at once if they are small and nothing waits.
   * @param reading the parsing of the texts, as `readLarge` returns it
   */
  take(deliver: () => void, reading: Promise<void> | undefined): void {
    if (this.#last === undefined && reading === undefined) return deliver();
    if (this.#last === undefined) this.#gate.hold();
    const last = Promise.all([this.#last, reading])
      .then(deliver)
      .catch((cause: unknown) => reportFault(this.#seam, cause))
      .then(() => {
        if (this.#last !== last) return;
        this.#last = undefined;
        this.#gate.release();
      });
    this.#last = last;
  }
}
