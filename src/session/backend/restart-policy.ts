import { backoff } from '../../util/timing/backoff.ts';
import { LossWindow } from '../../util/timing/loss-window.ts';

/**
 * More losses than this within the window are a crash loop: the session ends, and its client starts a new one. For a
 * remote server, failed reconnects do not count as losses, because its operator restarts it. Nor does the end of a
 * connection that has worked: proxies cut idle streams, some every few seconds.
 */
const maxLosses = 5;
const lossWindowMs = 60_000;

/** A remote server whose connection lasts this long has not crashed at its start. */
const workingMs = 1_000;

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
  #startedAt = performance.now();
  /** True once the server has sent a message since its start. */
  hasServed = false;

  constructor(isRemote: boolean) {
    this.#isRemote = isRemote;
  }

  /** The server was started with success. */
  noteStart(): void {
    this.failures = 0;
    this.#startedAt = performance.now();
    this.hasServed = false;
  }

  /** Counts a loss. True if the limit is exceeded. */
  countLoss(): boolean {
    const hasWorked = this.hasServed || performance.now() - this.#startedAt >= workingMs;
    if (!this.#isRemote || !hasWorked) return this.#losses.count();
    this.#losses.clear();
    return false;
  }

  /** The pause before the next start, in milliseconds. */
  get pauseMs(): number {
    const pauseMs = this.failures === 0 ? 0 : pauseAfter(this.failures - 1);
    if (!this.#isRemote) return pauseMs;
    // Random, so that the sessions of a server that was away do not all reconnect at once.
    return Math.max(pauseMs, firstPauseMs) * (0.5 + Math.random() / 2);
  }
}
