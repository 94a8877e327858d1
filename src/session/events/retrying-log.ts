import type { AppendOutcome, EventLog, ReadOutcome } from '../../store/event-log.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';

/** A log whose calls are retried while its store is not available, until the signal is aborted. */
export class RetryingLog implements EventLog {
  readonly #log: EventLog;
  readonly #signal: AbortSignal;

  constructor(log: EventLog, signal: AbortSignal) {
    this.#log = log;
    this.#signal = signal;
  }

  append(...args: Parameters<EventLog['append']>): Promise<AppendOutcome> {
    return retryWhileUnavailable(() => this.#log.append(...args), this.#signal);
  }

  read(...args: Parameters<EventLog['read']>): Promise<ReadOutcome> {
    return retryWhileUnavailable(() => this.#log.read(...args), this.#signal);
  }
}
