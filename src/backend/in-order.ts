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
   * Delivers what was read of some texts: at once, if it is known already and nothing waits.
   * @param read a promise while large texts are being parsed; see `readServerTexts`
   */
  take<T extends object>(read: T | Promise<T>, deliver: (read: T) => void): void {
    if (this.#last === undefined && !(read instanceof Promise)) return deliver(read);
    if (this.#last === undefined) this.#gate.hold();
    const last = Promise.all([read, this.#last])
      .then(([known]) => deliver(known))
      .catch((cause: unknown) => reportFault(this.#seam, cause))
      .then(() => {
        if (this.#last !== last) return;
        this.#last = undefined;
        this.#gate.release();
      });
    this.#last = last;
  }
}
