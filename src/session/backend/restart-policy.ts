import { backoff } from '../../util/timing/backoff.ts';
import { LossWindow } from '../../util/timing/loss-window.ts';

/**
 * More losses than this within the window are a crash loop: the session ends, and its client starts a new one. For a
 * remote server, failed reconnects do not count as losses, because its operator restarts it.
 */
const maxLosses = 5;
const lossWindowMs = 60_000;

/**
 * The pause before a start that follows a failed one; the first start follows at once. The pause doubles each time, up
 * to a limit.
 */
const firstPauseMs = 250;
const pauseAfter = backoff({ firstMs: firstPauseMs, maxMs: 5_000 });

/** Decides how often, and how soon, the server of one session is started again. */
export class RestartPolicy {
  /** Failed starts since the last successful one. */
  failures = 0;
  readonly #isRemote: boolean;
  readonly #losses = new LossWindow(maxLosses, lossWindowMs);

  constructor(isRemote: boolean) {
    this.#isRemote = isRemote;
  }

  /** Counts a loss. True if the limit is exceeded. */
  countLoss(): boolean {
    return this.#losses.count();
  }

  /** The pause before the next start, in milliseconds. */
  get pauseMs(): number {
    const pauseMs = this.failures === 0 ? 0 : pauseAfter(this.failures - 1);
    if (!this.#isRemote) return pauseMs;
    // Random, so that the sessions of a server that was away do not all reconnect at once.
    return Math.max(pauseMs, firstPauseMs) * (0.5 + Math.random() / 2);
  }
}
