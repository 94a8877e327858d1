import type { Rates } from '../store/shared/rates.ts';
import { StoreUnavailable } from '../store/store-unavailable.ts';
import { detach } from '../util/boundary.ts';
import type { RequestRate } from './rate.ts';

/** How often instances tell each other what was used: nothing is asked of the store for a single request. */
const shareMs = 500;

/**
 * Rates that hold for all instances together. Each decides by itself, at once, by what it knows; what was used is added to
 * what the others have used a little later, and what comes of it is known from then on. With the store away, each instance
 * goes on by itself (P7), and what it used meanwhile is not told later.
 */
export class SharedRate {
  readonly #rates: Rates;
  readonly #onFailed: (cause: unknown) => void;
  /** What was used and is not told, by name. */
  readonly #untold = new Map<string, RequestRate>();
  #timer: NodeJS.Timeout | undefined;
  #isTelling = false;

  constructor(rates: Rates, onFailed: (cause: unknown) => void) {
    this.#rates = rates;
    this.#onFailed = onFailed;
  }

  /** A rate was used. */
  note(name: string, rate: RequestRate): void {
    this.#untold.set(name, rate);
    if (!this.#isTelling) this.#timer ??= setTimeout(() => detach('background', this.#tell()), shareMs).unref();
  }

  async #tell(): Promise<void> {
    this.#timer = undefined;
    this.#isTelling = true;
    const told = [...this.#untold];
    this.#untold.clear();
    await Promise.all(told.map(([name, rate]) => this.#tellOne(name, rate)));
    this.#isTelling = false;
    if (this.#untold.size > 0) this.#timer = setTimeout(() => detach('background', this.#tell()), shareMs).unref();
  }

  async #tellOne(name: string, rate: RequestRate): Promise<void> {
    // By the time of the question and not of the answer: a slow answer must not make the debt larger than it is.
    const askedAt = performance.now();
    try {
      rate.settle(await this.#rates.use(name, rate.takeUnshared()), askedAt);
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable)) this.#onFailed(cause);
    }
  }
}
