import { contain } from '../util/boundary.ts';

/** How often is looked for what is overdue, at least. */
const maxEveryMs = 30_000;

/** Looks again and again for what has become overdue: one timer for all sessions, which keeps no process alive. */
export class Sweep {
  readonly #run: () => void;
  #everyMs = maxEveryMs;
  #timer: NodeJS.Timeout;

  constructor(run: () => void) {
    this.#run = () => contain('background', run);
    this.#timer = setInterval(this.#run, maxEveryMs).unref();
  }

  /** From now on what is due after so many milliseconds is noticed at most a quarter of that later. */
  notice(ms = Number.POSITIVE_INFINITY): void {
    const everyMs = Math.ceil(ms / 4);
    if (everyMs >= this.#everyMs) return;
    clearInterval(this.#timer);
    this.#everyMs = everyMs;
    this.#timer = setInterval(this.#run, everyMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
