import { portionsOf, readServerTexts, type ServerMessages } from '../protocol/message/server-texts.ts';
import { reportFault, type Seam } from '../util/boundary.ts';

/** Stops and starts the reading from one peer. */
export interface Gate {
  /** Stops reading from the peer: a large text is being parsed. */
  hold(): void;
  /** Continues reading: every text has been delivered. */
  release(): void;
}

const nothing = {};

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
   * Reads texts of a server and delivers their messages, in portions that each fit into a turn of the event loop. A
   * portion is read when the ones before it are delivered.
   */
  takeTexts(texts: readonly Buffer[], deliver: (read: ServerMessages) => void): void {
    if (texts.length === 0) return;
    for (const portion of portionsOf(texts, (text) => text)) this.takeLater(() => readServerTexts(portion), deliver);
  }

  /**
   * Reads and delivers when everything before is delivered: at once if nothing waits. Texts that wait are their bytes
   * only, and one peer has one read in the work meter.
   * @param read returns a promise while large texts are being parsed; see `readServerTexts`
   */
  takeLater<T extends object>(read: () => T | Promise<T>, deliver: (read: T) => void): void {
    if (this.#last !== undefined) return this.#queue(this.#last.then(read).then(deliver));
    const known = read();
    if (known instanceof Promise) this.#queue(known.then(deliver));
    else deliver(known);
  }

  /** Does something after everything that was taken up to now is delivered. */
  after(act: () => void): void {
    this.takeLater(() => nothing, act);
  }

  #queue(delivery: Promise<void>): void {
    if (this.#last === undefined) this.#gate.hold();
    const last = delivery
      .catch((cause: unknown) => reportFault(this.#seam, cause))
      .then(() => {
        if (this.#last !== last) return;
        this.#last = undefined;
        this.#gate.release();
      });
    this.#last = last;
  }
}
