import type { AppendOutcome, EventLog, ReadOutcome } from '../../store/event-log.ts';
import { retryWhileUnavailable, type StopSignal } from '../../store/retry-unavailable.ts';

/** A log whose calls are retried while its store is not available, until the signal is aborted. */
export class RetryingLog implements EventLog {
  /** Called after each attempt to append that failed. */
  onFailure: (() => void) | undefined;
  readonly #log: EventLog;
  readonly #stop: StopSignal;

  constructor(log: EventLog, stop: StopSignal) {
    this.#log = log;
    this.#stop = stop;
  }

  append(...args: Parameters<EventLog['append']>): Promise<AppendOutcome> {
    return retryWhileUnavailable(
      () => this.#log.append(...args),
      this.#stop,
      () => this.onFailure?.(),
    );
  }

  read(...args: Parameters<EventLog['read']>): Promise<ReadOutcome> {
    return retryWhileUnavailable(() => this.#log.read(...args), this.#stop);
  }
}
