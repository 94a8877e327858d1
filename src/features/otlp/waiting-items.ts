import type { ExportCounts } from './export-counts.ts';
import type { Signal } from './otlp-settings.ts';

/**
 * Bounds the items that wait for the collector, also those of an export that goes on (P8). The SDK has the same bound,
 * but drops without saying how many.
 */
export class WaitingItems {
  readonly #signal: Signal;
  readonly #max: number;
  readonly #counts: ExportCounts;
  #waiting = 0;

  constructor(signal: Signal, max: number, counts: ExportCounts) {
    this.#signal = signal;
    this.#max = max;
    this.#counts = counts;
  }

  /** True if there is room for one more item, which counts as waiting. Otherwise it counts as lost. */
  take(): boolean {
    if (this.#waiting < this.#max) {
      this.#waiting += 1;
      return true;
    }
    this.#counts.lost(this.#signal, 1);
    return false;
  }

  /** The export of these items has ended. */
  readonly settle = (items: number): void => {
    this.#waiting -= items;
  };
}
