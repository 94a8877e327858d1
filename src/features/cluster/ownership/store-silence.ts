/**
 * The most that counts of the time between two checks, in milliseconds. A process that was frozen could not have reached
 * the store meanwhile.
 */
const maxCountedMs = 1_000;

/** Measures for how long the store could have answered this instance, and did not. */
export class StoreSilence {
  #checkedAt = performance.now();
  #silentMs = 0;

  /**
   * Counts the time since the last check.
   * @param unconfirmedMs the time since the store last confirmed the lease, in milliseconds
   * @returns the silence so far, in milliseconds
   */
  check(unconfirmedMs: number): number {
    const now = performance.now();
    this.#silentMs = Math.min(unconfirmedMs, this.#silentMs + Math.min(now - this.#checkedAt, maxCountedMs));
    this.#checkedAt = now;
    return this.#silentMs;
  }
}
