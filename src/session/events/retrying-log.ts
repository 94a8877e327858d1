import type { EventLog } from '../../store/event-log.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';

/** A log whose calls are retried while its store is not available, until the signal is aborted. */
export const retryingLog = (log: EventLog, signal: AbortSignal): EventLog => ({
  append: (...args) => retryWhileUnavailable(() => log.append(...args), signal),
  read: (...args) => retryWhileUnavailable(() => log.read(...args), signal),
});
