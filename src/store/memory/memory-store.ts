// src/store/memory: the store of a single instance, in the memory of its process.
import type { LogLimits } from '../event-log.ts';
import type { Store } from '../store.ts';
import { createMemoryChanges } from './memory-changes.ts';
import type { MemoryLog } from './memory-log.ts';
import { createMemoryOutcomes } from './memory-outcomes.ts';
import { createMemoryRates } from './memory-rates.ts';
import { createMemorySecrets } from './memory-secrets.ts';
import { createMemorySessions } from './memory-sessions.ts';

/** The limits of each log and of all logs together, and the lifetime of sessions. */
export interface MemoryLimits extends LogLimits {
  /**
   * The limit of the bytes of all sessions' events; none by default. The session with the most bytes is evicted first.
   */
  readonly maxTotalBytes?: number;
  /** For how long an unused session is kept; an hour by default. Infinity keeps the session until it is ended. */
  readonly recordTtlMs?: number;
}

/**
 * Makes a store in the memory of this process. Its data are lost when the process ends.
 *
 * Every call has taken effect before it returns its promise, so calls take effect in the order in which they are made.
 * @param now milliseconds of a clock that never jumps. By default that is the monotonic clock, so that a change of the
 *   system clock does not empty the logs (docs/hardening.md, F29)
 */
export function createMemoryStore(limits: MemoryLimits, now: () => number = () => performance.now()): Store {
  const { maxTotalBytes = Number.POSITIVE_INFINITY, recordTtlMs = 3_600_000 } = limits;

  let totalBytes = 0;
  const onRemoved = ({ log }: { readonly log: MemoryLog }): void => {
    totalBytes -= log.bytes;
  };
  const sessions = createMemorySessions({ limits, recordTtlMs, now, onRemoved });
  const secrets = createMemorySecrets();
  const changes = createMemoryChanges();
  const outcomes = createMemoryOutcomes(now);
  const rates = createMemoryRates(now);

  /** Runs a change of a log and updates `totalBytes`. */
  const trackBytes = <T>(log: MemoryLog, change: () => T): T => {
    totalBytes -= log.bytes;
    try {
      return change();
    } finally {
      totalBytes += log.bytes;
    }
  };

  const makeRoom = (): void => {
    while (totalBytes > maxTotalBytes) {
      const logs = [...sessions.values()].map(({ log }) => log);
      const largest = logs.reduce((a, b) => (b.bytes > a.bytes ? b : a));
      // Evict a tenth of the largest log at once: a search for the largest log for each event would be quadratic.
      const targetBytes = Math.min(largest.bytes * 0.9, largest.bytes - 1);
      trackBytes(largest, () => {
        while (largest.bytes > targetBytes) largest.evictOldest();
      });
    }
  };

  // Appends and reads evict old events themselves. The sweep is for unused sessions.
  const sweep = setInterval(() => {
    const nowMs = now();
    sessions.sweep();
    outcomes.sweep();
    rates.sweep();
    for (const { log } of sessions.values()) trackBytes(log, () => log.evict(nowMs));
  }, sweepEveryMs(limits));
  sweep.unref();

  return {
    log: {
      async append(key, epoch, expectedTail, events) {
        const session = sessions.underEpoch(key, epoch);
        if (typeof session === 'string') return { outcome: session };
        const outcome = trackBytes(session.log, () => session.log.append(expectedTail, events, now()));
        makeRoom();
        return outcome;
      },
      async read(key, stream, after, limit) {
        const log = sessions.get(key)?.log;
        if (log === undefined) return { outcome: 'unknown_stream' };
        return trackBytes(log, () => log.read(stream, after, limit, now()));
      },
    },

    sessions,
    secrets,
    changes,
    outcomes,
    rates,

    healthyForMs: () => Number.POSITIVE_INFINITY,
    onRecovered: () => undefined, // the memory store has no outages

    async close() {
      clearInterval(sweep);
      sessions.clear();
      secrets.clear();
      changes.clear();
      outcomes.clear();
      rates.clear();
    },
  };
}

/** Limits how long an event outlives its maximum age: a quarter of that age, but between 1 s and 60 s. */
const sweepEveryMs = ({ maxAgeMs }: LogLimits): number => Math.min(Math.max(maxAgeMs / 4, 1_000), 60_000);
