import { portionsOf, readServerTexts, type ServerMessages } from '../protocol/message/message.ts';
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
   * Delivers what was read of some texts: at once, if it is known already and nothing waits.
   * @param read a promise while large texts are being parsed; see `readServerTexts`
   */
  take<T extends object>(read: T | Promise<T>, deliver: (read: T) => void): void {
    if (this.#last === undefined && !(read instanceof Promise)) return deliver(read);
    this.#queue(Promise.all([read, this.#last]).then(([known]) => deliver(known)));
  }

  /**
   * Reads texts of a server and delivers their messages, in portions that each fit into a turn of the event loop. A
   * portion is read when the ones before it are delivered.
   */
  takeTexts(texts: readonly Buffer[], deliver: (read: ServerMessages) => void): void {
    for (const portion of portionsOf(texts, (text) => text)) this.takeLater(() => readServerTexts(portion), deliver);
  }

  /** Like `take`, for what is read when its turn has come. */
  takeLater<T extends object>(read: () => T | Promise<T>, deliver: (read: T) => void): void {
    if (this.#last === undefined) this.take(read(), deliver);
    else this.#queue(this.#last.then(read).then(deliver));
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
