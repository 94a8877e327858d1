/** The span of a sum, in milliseconds, and its slots. */
export const recentSpanMs = 300_000;
const slots = 5;
const slotMs = recentSpanMs / slots;

/** Counts what happened in the last five minutes, to within a minute. Its memory does not depend on the count. */
export class RecentSum {
  readonly #counts = new Uint32Array(slots);
  readonly #now: () => number;
  #period: number;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#period = this.#current;
  }

  add(): void {
    this.#advance();
    (this.#counts[this.#period % slots] as number) += 1;
  }

  get value(): number {
    this.#advance();
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  #advance(): void {
    const current = this.#current;
    const passed = Math.min(slots, current - this.#period);
    for (let step = 0; step < passed; step += 1) this.#counts[(current - step) % slots] = 0;
    this.#period = current;
  }

  get #current(): number {
    return Math.floor(this.#now() / slotMs);
  }
}
