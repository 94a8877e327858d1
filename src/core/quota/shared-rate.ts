import type { Rates } from '../store/shared/shared-data.ts';
import { StoreUnavailable } from '../store/store-unavailable.ts';
import { detach } from '../util/boundary.ts';
import type { RequestRate } from './rate.ts';

/** How often an instance shares its uses through the store, so that no single request has to wait for the store. */
const shareMs = 500;

/**
 * Rates that all instances share. Each instance decides at once by the debt that it knows. A little later it adds its
 * uses to the shared debt and learns the sum. During an outage of the store each instance counts alone (P7), and its
 * uses of that time are not shared later.
 */
export class SharedRate {
  readonly #rates: Rates;
  readonly #onFailed: (cause: unknown) => void;
  /** The rates with uses that are not shared yet, by name. */
  readonly #unshared = new Map<string, RequestRate>();
  #timer: NodeJS.Timeout | undefined;
  #isSharing = false;

  constructor(rates: Rates, onFailed: (cause: unknown) => void) {
    this.#rates = rates;
    this.#onFailed = onFailed;
  }

  /** Notes that a rate was used, and shares the uses soon. */
  note(name: string, rate: RequestRate): void {
    this.#unshared.set(name, rate);
    if (!this.#isSharing) this.#timer ??= setTimeout(() => detach('background', this.#shareAll()), shareMs).unref();
  }

  async #shareAll(): Promise<void> {
    this.#timer = undefined;
    this.#isSharing = true;
    const used = [...this.#unshared];
    this.#unshared.clear();
    await Promise.all(used.map(([name, rate]) => this.#share(name, rate)));
    this.#isSharing = false;
    if (this.#unshared.size > 0)
      this.#timer = setTimeout(() => detach('background', this.#shareAll()), shareMs).unref();
  }

  async #share(name: string, rate: RequestRate): Promise<void> {
    // The time of the command counts, not that of the reply: a slow reply must not enlarge the debt.
    const sentAt = performance.now();
    try {
      rate.settle(await this.#rates.use(name, rate.takeUnshared()), sentAt);
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable)) this.#onFailed(cause);
    }
  }
}
