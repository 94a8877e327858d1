import type { CommandObserver } from '../../../store/command-observer.ts';
import type { EventLog } from '../../../store/event-log.ts';
import type { Metrics } from '../metrics.ts';

/** Measures Redis commands. */
export function measureCommands(metrics: Metrics): CommandObserver {
  const seconds = metrics.distributions('redisSeconds').of();
  return {
    answered: (tookMs) => seconds.add(tookMs / 1_000),
    failed(reason) {
      metrics.tallies('redisErrors').of(reason).value += 1;
    },
  };
}

/** Counts evicted events. */
export function countEvictions(metrics: Metrics): (count: number) => void {
  const evicted = metrics.tallies('eventsEvicted').of();
  return (count) => {
    evicted.value += count;
  };
}

/** Decorates an event log: counts the events that are appended. */
export function countAppends(log: EventLog, metrics: Metrics): EventLog {
  const appended = metrics.tallies('eventsAppended').of();
  const bytes = metrics.tallies('eventBytes').of();
  const fenced = metrics.tallies('fenced').of();
  return {
    async append(key, epoch, expectedTail, events) {
      const result = await log.append(key, epoch, expectedTail, events);
      // `already`: an earlier attempt, whose answer was lost, has stored the events.
      if (result.outcome === 'stored' || result.outcome === 'already') {
        appended.value += events.length;
        for (const { data } of events) bytes.value += data.length;
      } else if (result.outcome === 'fenced') fenced.value += 1;
      return result;
    },
    read: (...position) => log.read(...position),
  };
}
