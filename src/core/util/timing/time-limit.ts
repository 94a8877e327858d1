/**
 * A timer that comes later than this shows that the gateway stood still: it was stopped (SIGSTOP), or its machine was.
 * Even a busy gateway is not that late.
 */
const lateMs = 1_000;

/** From here on, a limit that comes late may have passed what has arrived: the event loop was busy with something long. */
const busyMs = 100;

/** So long the gateway then reads what has arrived meanwhile. It takes a few turns of the event loop. */
export const catchUpMs = 100;

/** How often `PauseWatch` looks. */
const tickMs = 500;

/**
 * A limit on the time that the gateway waits for a peer. The event loop runs timers before it reads: after a pause of the
 * whole gateway, or a long turn of its loop, all limits would be over although the answers are there. Such a limit waits
 * a moment longer.
 */
export class TimeLimit {
  #timer: NodeJS.Timeout;

  /** @param onOver called once, unless the limit is cleared before */
  constructor(onOver: () => void, ms: number) {
    const dueMs = performance.now() + ms;
    this.#timer = setTimeout(() => {
      if (performance.now() - dueMs < busyMs) onOver();
      else this.#timer = setTimeout(onOver, catchUpMs);
    }, ms);
  }

  /** The peer has answered. */
  clear(): void {
    clearTimeout(this.#timer);
  }

  /** Lets the process end before the limit is over. */
  unref(): this {
    this.#timer.unref();
    return this;
  }
}

/** As `AbortSignal.timeout`, with a limit as above. */
export function timeLimitSignal(ms: number): AbortSignal {
  const controller = new AbortController();
  new TimeLimit(
    () => controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
    ms,
  ).unref();
  return controller.signal;
}

/**
 * Knows whether the gateway has just stood still, for limits that Node.js itself watches: nobody can tell when their
 * timers were due.
 */
export class PauseWatch {
  #tickedMs = performance.now();
  #stoodStillMs = Number.NEGATIVE_INFINITY;
  readonly #timer = setInterval(() => this.#tick(), tickMs).unref();

  /** True if what arrived during the pause may not have been read yet. */
  hasJustStoodStill(): boolean {
    this.#tick();
    return performance.now() - this.#stoodStillMs < catchUpMs;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const nowMs = performance.now();
    if (nowMs - this.#tickedMs >= tickMs + lateMs) this.#stoodStillMs = nowMs;
    this.#tickedMs = nowMs;
  }
}

/**
 * As `TimeLimit`, for a timer that looks for overdue peers again and again: returns what the timer calls.
 * @param run may be called once more after the timer is cleared
 */
export function afterCatchUp(run: () => void, everyMs: number): () => void {
  let lastMs = performance.now();
  return () => {
    const nowMs = performance.now();
    const isLate = nowMs - lastMs >= everyMs + lateMs;
    lastMs = nowMs;
    if (isLate) setTimeout(run, catchUpMs).unref();
    else run();
  };
}
