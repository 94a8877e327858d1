import { backoff } from '../../util/timing/backoff.ts';

/** More losses than this within the window are a crash loop. */
const maxLosses = 5;
const lossWindowMs = 60_000;

/** A process or connection that lasts this long has not crashed at its start. */
const workingMs = 1_000;

/** The pause before a start that follows the second loss in a row. The first loss has no pause. */
const firstPauseMs = 250;
const pauseAfter = backoff({ firstMs: firstPauseMs, maxMs: 5_000 });

/** The pause of a crash loop. It doubles, up to a limit, until the server works again. */
const loopPauseAfter = backoff({ firstMs: 30_000, maxMs: 60_000 });

/** Options of a restart policy. */
export interface RestartPolicyOptions {
  /**
   * True for a server that its own operator starts again. Its failed starts cost one request each, and do not lead to a
   * crash loop. Nor does the end of a connection that has worked: proxies cut idle connections, some every few seconds.
   */
  readonly isRemote: boolean;
  /** The longest pause outside of crash loops, in milliseconds; 5 s by default. */
  readonly maxPauseMs?: number;
}

/**
 * Decides how soon a server is started again after it has ended or has not started, and recognises a crash loop
 * (docs/health.md, "Restarts"; docs/decisions/0189). It counts the losses in a row, and those within a minute. After a
 * crash loop one start is tried. If the server is lost again before it has worked, that is the next crash loop.
 */
export class RestartPolicy {
  readonly #isRemote: boolean;
  readonly #maxPauseMs: number;
  /** The times of recent losses on the monotonic clock, oldest first; undefined for none. */
  #times: number[] | undefined;
  /** Losses and failed starts since the server last worked. */
  #row = 0;
  /** Crash loops since the server last worked. */
  #loops = 0;
  /** No start before this time. */
  #startsAt = 0;
  #startedAt: number | undefined;
  /** Starts that failed since the last successful one. */
  failedStarts = 0;
  /** Set to true when the server has done something for its user, such as answering a request. */
  hasWorked = false;

  constructor({ isRemote, maxPauseMs = Number.POSITIVE_INFINITY }: RestartPolicyOptions) {
    this.#isRemote = isRemote;
    this.#maxPauseMs = maxPauseMs;
  }

  /** The server has started. */
  noteStart(): void {
    this.failedStarts = 0;
    this.#startedAt = performance.now();
  }

  /** A server that had started has ended by itself. Returns true if that is a crash loop. */
  countLoss(): boolean {
    const worked = this.#takeWork();
    return this.#count(!(this.#isRemote && worked));
  }

  /** The server has not started. Returns true if that is a crash loop. */
  countFailedStart(): boolean {
    this.#takeWork();
    this.failedStarts += 1;
    return this.#count(!this.#isRemote);
  }

  /** How long to wait before the next start, in milliseconds from now. */
  get pauseMs(): number {
    return Math.max(this.#startsAt - performance.now(), 0);
  }

  /** True if the server has worked since the last loss; what was counted before that is forgotten then. */
  #takeWork(): boolean {
    const isLong = this.#startedAt !== undefined && performance.now() - this.#startedAt >= workingMs;
    const worked = this.hasWorked || isLong;
    this.hasWorked = false;
    this.#startedAt = undefined;
    if (!worked) return false;
    this.#row = 0;
    this.#loops = 0;
    if (this.#isRemote) this.#times = undefined;
    return true;
  }

  /** @param mayBeLoop false for a loss that is no sign of a crash loop */
  #count(mayBeLoop: boolean): boolean {
    const now = performance.now();
    this.#row += 1;
    const isLoop = mayBeLoop && this.#endsInLoop(now);
    this.#startsAt = now + (isLoop ? loopPauseAfter(this.#loops - 1) : this.#ordinaryPauseMs());
    return isLoop;
  }

  #endsInLoop(now: number): boolean {
    this.#times = [...(this.#times ?? []).filter((at) => now - at < lossWindowMs), now];
    if (this.#loops === 0 && this.#times.length <= maxLosses) return false;
    this.#loops += 1;
    this.#times = undefined;
    return true;
  }

  #ordinaryPauseMs(): number {
    const pauseMs = this.#row === 1 ? 0 : Math.min(pauseAfter(this.#row - 2), this.#maxPauseMs);
    if (!this.#isRemote) return pauseMs;
    // Random, so that the sessions of a server that was away do not all reconnect at once.
    return Math.max(pauseMs, firstPauseMs) * (0.5 + Math.random() / 2);
  }
}
