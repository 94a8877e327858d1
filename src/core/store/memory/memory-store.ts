// src/core/store/memory: the store of a single instance, in the memory of its process, and its journal in files.
import { withPromises } from '../immediate.ts';
import type { SessionRecords } from '../session-records.ts';
import type { Values } from '../shared/shared-data.ts';
import type { Store } from '../store.ts';
import { createMemoryTables, type MemoryLimits, sweepEveryMs } from './memory-tables.ts';

export type { MemoryLimits } from './memory-tables.ts';

/**
 * Makes a store in the memory of this process. Its data are lost when the process ends.
 *
 * Every call has taken effect before it returns its promise, so calls take effect in the order in which they are made.
 * @param now milliseconds of a clock that never jumps. By default that is the monotonic clock, so that a change of the
 *   system clock does not empty the logs (docs/hardening.md, F29)
 */
export function createMemoryStore(limits: MemoryLimits, now: () => number = () => performance.now()): Store {
  const tables = createMemoryTables(limits, now);
  const { log, sessions, values, changes, rates, reservations } = tables;

  // Appends and reads evict old events themselves. The sweep is for unused sessions.
  const sweep = setInterval(tables.sweep, sweepEveryMs(limits));
  sweep.unref();

  return {
    log: {
      append: async (key, epoch, expectedTail, events) => log.append(key, epoch, expectedTail, events),
      read: async (key, stream, after, limit) => log.read(key, stream, after, limit),
    },
    sessions: withPromises<SessionRecords>(sessions),
    values: withPromises<Values>({ get: values.get, set: values.set, keep: values.keep }),
    changes,
    rates,
    reservations,

    healthyForMs: () => Number.POSITIVE_INFINITY,
    onRecovered: () => undefined, // the memory store has no outages

    async close() {
      clearInterval(sweep);
    },
  };
}
