import { contain } from '../util/boundary.ts';
import { afterCatchUp } from '../util/timing/time-limit.ts';

/** The longest interval between two sweeps. */
const maxEveryMs = 30_000;

/**
 * Looks for overdue sessions again and again. One timer serves all sessions, and it does not keep the process alive.
 */
export class Sweep {
  readonly #run: () => void;
  #everyMs = maxEveryMs;
  #timer: NodeJS.Timeout;

  constructor(run: () => void) {
    this.#run = () => contain('background', run);
    this.#timer = setInterval(afterCatchUp(this.#run, maxEveryMs), maxEveryMs).unref();
  }

  /** Makes sure that anything due after `ms` is noticed at most a quarter of `ms` later. */
  notice(ms = Number.POSITIVE_INFINITY): void {
    const everyMs = Math.ceil(ms / 4);
    if (everyMs >= this.#everyMs) return;
    clearInterval(this.#timer);
    this.#everyMs = everyMs;
    this.#timer = setInterval(afterCatchUp(this.#run, everyMs), everyMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
