/** How many there may be: so many at once, and then one more after each time. `undefined` for any number. */
export interface RateLimit {
  readonly burst: number;
  readonly everyMs: number;
}

/** Sums of times that were divided are not exact. */
const toleranceMs = 0.001;

/**
 * What was used of a rate, as a debt in time: each use costs `everyMs`, and a second of the debt is paid off each second
 * (the generic cell rate algorithm of ATM, ITU-T I.371). One number, however many uses there are.
 */
export class RequestRate {
  readonly #everyMs: number;
  readonly #burstMs: number;
  #paidAt = Number.NEGATIVE_INFINITY;
  #unsharedMs = 0;

  constructor(limit: RateLimit | undefined) {
    this.#everyMs = limit?.everyMs ?? 0;
    this.#burstMs = limit === undefined ? Number.POSITIVE_INFINITY : limit.everyMs * limit.burst + toleranceMs;
  }

  /** True if there may be one more. */
  hasRoom(nowMs: number): boolean {
    return Math.max(this.#paidAt - nowMs, 0) + this.#everyMs <= this.#burstMs;
  }

  /** Counts uses, whether or not there is room: what there is too much of has to be waited for. */
  use(count: number, nowMs: number): void {
    const costMs = count * this.#everyMs;
    this.#paidAt = Math.max(this.#paidAt, nowMs) + costMs;
    this.#unsharedMs += costMs;
  }

  /** What was used since this was asked for last, in milliseconds. */
  takeUnshared(): number {
    const costMs = this.#unsharedMs;
    this.#unsharedMs = 0;
    return costMs;
  }

  /** The debt of all together was this much; what was used here meanwhile comes to it. */
  settle(debtMs: number, atMs: number): void {
    this.#paidAt = Math.max(this.#paidAt, atMs + debtMs + this.#unsharedMs);
  }

  /** True if nothing would be forgotten with it. */
  isPaid(nowMs: number): boolean {
    return this.#paidAt <= nowMs && this.#unsharedMs === 0;
  }
}
