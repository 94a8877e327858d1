import type { EventLog } from '../../../core/store/event-log.ts';
import type { FindMeter } from '../../../core/util/telemetry/meter.ts';

/** Decorates an event log: counts the events that are appended. */
export function countAppends(log: EventLog, meterOf: FindMeter<'eventsAppended' | 'eventBytes' | 'fenced'>): EventLog {
  const appended = meterOf('eventsAppended');
  const bytes = meterOf('eventBytes');
  const fenced = meterOf('fenced');
  return {
    async append(key, epoch, expectedTail, events) {
      const result = await log.append(key, epoch, expectedTail, events);
      // `already`: an earlier attempt, whose answer was lost, has stored the events.
      if (result.outcome === 'stored' || result.outcome === 'already') {
        appended.add(events.length);
        bytes.add(events.reduce((sum, { data }) => sum + data.length, 0));
      } else if (result.outcome === 'fenced') fenced.add(1);
      return result;
    },
    read: (...position) => log.read(...position),
  };
}
