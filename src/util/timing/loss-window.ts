/** Recognises a crash loop: more losses than a limit within a time. */
export class LossWindow {
  readonly #max: number;
  readonly #windowMs: number;
  /** The times of recent losses on the monotonic clock, oldest first; undefined for none. */
  #times: number[] | undefined;

  /**
   * @param max how many losses are allowed within the window
   * @param windowMs in milliseconds
   */
  constructor(max: number, windowMs: number) {
    this.#max = max;
    this.#windowMs = windowMs;
  }

  /** Counts a loss. Returns true if there were more than the limit within the window. */
  count(): boolean {
    const now = performance.now();
    this.#times = [...(this.#times ?? []).filter((at) => now - at < this.#windowMs), now];
    return this.#times.length > this.#max;
  }

  /** Forgets all losses. */
  clear(): void {
    this.#times = undefined;
  }
}
