/** A rate: `burst` uses at once, and then one more after each `everyMs`. */
export interface RateLimit {
  readonly burst: number;
  readonly everyMs: number;
}

/** The tolerance for rounding errors in sums of divided times. */
const toleranceMs = 0.001;

/**
 * The use of a rate as a debt in time: each use costs `everyMs`, and each second pays off a second of the debt. This is
 * the generic cell rate algorithm of ATM (ITU-T I.371). One number is enough, however many uses there are.
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

  /** True if one more use is within the limit. */
  hasRoom(nowMs: number): boolean {
    return Math.max(this.#paidAt - nowMs, 0) + this.#everyMs <= this.#burstMs;
  }

  /** Counts uses even beyond the limit. The excess delays the next uses. */
  use(count: number, nowMs: number): void {
    const costMs = count * this.#everyMs;
    this.#paidAt = Math.max(this.#paidAt, nowMs) + costMs;
    this.#unsharedMs += costMs;
  }

  /** Returns the cost in milliseconds since the last call. */
  takeUnshared(): number {
    const costMs = this.#unsharedMs;
    this.#unsharedMs = 0;
    return costMs;
  }

  /** Sets the debt that all instances together had at a time. Uses of this instance since then are added. */
  settle(debtMs: number, atMs: number): void {
    this.#paidAt = Math.max(this.#paidAt, atMs + debtMs + this.#unsharedMs);
  }

  /** True if there is no debt. A rate that no other instance has to know of can be dropped without loss then. */
  isPaid(nowMs: number): boolean {
    return this.#paidAt <= nowMs;
  }

  /** True if the other instances know of all uses. */
  get isShared(): boolean {
    return this.#unsharedMs === 0;
  }
}
