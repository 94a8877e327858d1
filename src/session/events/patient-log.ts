import type { EventLog } from '../../store/event-log.ts';
import { patiently } from '../../store/retry-unavailable.ts';

/** A log that is asked again while its store is not available, until nobody waits for it any more. */
export const patientLog = (log: EventLog, signal: AbortSignal): EventLog => ({
  append: (...of) => patiently(() => log.append(...of), signal),
  read: (...of) => patiently(() => log.read(...of), signal),
});
