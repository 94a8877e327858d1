import { reportFault, type Seam } from '../util/boundary.ts';

/** Stops and starts the reading of one peer. */
export interface Gate {
  /** Nothing more should be read of the peer: a large text is being read. */
  hold(): void;
  /** All that was read is handed over. */
  release(): void;
}

/**
 * Hands over the texts of one peer in order. A large text is read in turns of its own before, and the texts behind it wait. A fault
 * is reported, and ends nothing.
 */
export class OrderedDelivery {
  readonly #seam: Seam;
  readonly #gate: Gate;
  #last: Promise<void> | undefined;

  constructor(seam: Seam, gate: Gate) {
    this.#seam = seam;
    this.#gate = gate;
  }

  /** True while something waits. */
  get isBusy(): boolean {
    return this.#last !== undefined;
  }

  /** Resolves when nothing waits that was handed in up to now. */
  get idle(): Promise<void> {
    return this.#last ?? Promise.resolve();
  }

  /**
   * Hands over these texts, at once if they are small and nothing waits.
   * @param reading the reading of them, as `readLarge` returns it
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
