/**
 * More losses than this within the window are a crash loop: the session ends, and its client starts a new one. A remote
 * server that cannot be reached is not lost once more by each try: whoever runs it starts it again.
 */
const maxLosses = 5;
const lossWindowMs = 60_000;

/** The pause before a start that follows a failed one; the first follows at once. It doubles each time, up to a limit. */
const firstPauseMs = 250;
const maxPauseMs = 5_000;

/** How often, and how soon, the server of one session is started again. */
export class RestartPolicy {
  /** Starts that failed since the last one that did not. */
  failures = 0;
  readonly #isRemote: boolean;
  #losses: number[] = [];

  constructor(isRemote: boolean) {
    this.#isRemote = isRemote;
  }

  /** Counts a loss. True if it is one too many. */
  isOneTooMany(): boolean {
    const now = performance.now();
    this.#losses = [...this.#losses.filter((at) => now - at < lossWindowMs), now];
    return this.#losses.length > maxLosses;
  }

  /** What to wait before the next start, in milliseconds. */
  get pauseMs(): number {
    const pauseMs = this.failures === 0 ? 0 : Math.min(firstPauseMs * 2 ** (this.failures - 1), maxPauseMs);
    if (!this.#isRemote) return pauseMs;
    // At random, so that the sessions of a server that was away do not all come back in one moment.
    return Math.max(pauseMs, firstPauseMs) * (0.5 + Math.random() / 2);
  }
}
