import type { EventLog } from '../../store/event-log.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';

/** A log that is asked again while its store is not available, until nobody waits for it any more. */
export const retryingLog = (log: EventLog, signal: AbortSignal): EventLog => ({
  append: (...of) => retryWhileUnavailable(() => log.append(...of), signal),
  read: (...of) => retryWhileUnavailable(() => log.read(...of), signal),
});
