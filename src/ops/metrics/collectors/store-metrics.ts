import type { CommandObserver } from '../../../store/command-observer.ts';
import type { EventLog } from '../../../store/event-log.ts';
import type { Metrics } from '../metrics.ts';

/** Measures what is asked of Redis. */
export function measureCommands(metrics: Metrics): CommandObserver {
  const seconds = metrics.distributions('redisSeconds').of();
  return {
    answered: (tookMs) => seconds.observe(tookMs / 1_000),
    failed(reason) {
      metrics.tallies('redisErrors').of(reason).value += 1;
    },
  };
}

/** Counts events that are no longer kept. */
export function countEvicted(metrics: Metrics): (count: number) => void {
  const evicted = metrics.tallies('eventsEvicted').of();
  return (count) => {
    evicted.value += count;
  };
}

/** The same log, of which it is counted what goes in. */
export function countedLog(log: EventLog, metrics: Metrics): EventLog {
  const appended = metrics.tallies('eventsAppended').of();
  const bytes = metrics.tallies('eventBytes').of();
  const fenced = metrics.tallies('fenced').of();
  return {
    async append(key, epoch, expectedTail, events) {
      const told = await log.append(key, epoch, expectedTail, events);
      // Also where an earlier attempt, which had no answer, had stored them.
      if (told.outcome === 'stored' || told.outcome === 'already') {
        appended.value += events.length;
        for (const { data } of events) bytes.value += data.length;
      } else if (told.outcome === 'fenced') fenced.value += 1;
      return told;
    },
    read: (...of) => log.read(...of),
  };
}
