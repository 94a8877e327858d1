import type { LogLimits } from '../event-log.ts';
import type { Store } from '../store.ts';
import { createMemoryChanges } from './memory-changes.ts';
import { createMemoryInstances } from './memory-instances.ts';
import type { MemoryLog } from './memory-log.ts';
import { createMemoryOutcomes } from './memory-outcomes.ts';
import { createMemoryTaskOwners } from './memory-owners.ts';
import { createMemoryRates } from './memory-rates.ts';
import { createMemorySecrets } from './memory-secrets.ts';
import { createMemorySessions } from './memory-sessions.ts';

/** The limits of the logs, each and together, and the times and limits of sessions and instances. */
export interface MemoryLimits extends LogLimits {
  /** Bytes of the events of all sessions; over it, the session that holds most loses its oldest. None if not given. */
  readonly maxTotalBytes?: number;
  /** For how long an instance holds its lease after a renewal; 6 s if not given. */
  readonly leaseMs?: number;
  /** What a mailbox may hold unread (P8); 64 MiB if not given. */
  readonly mailboxMaxBytes?: number;
  /** For how long a session is kept that nobody touches; an hour if not given. Infinity keeps it until it is ended. */
  readonly recordTtlMs?: number;
}

/**
 * A store in this process's memory: gone when the process ends. Several gateways in one process can share it.
 *
 * Every call but `receive` is done before it returns, so its promise tells of something that has already happened; calls
 * are in order by themselves.
 * @param now milliseconds of a clock that never jumps; the default is the monotonic one, so that setting the system's
 *   clock does not empty the logs (docs/hardening.md, F29)
 */
export function createMemoryStore(limits: MemoryLimits, now: () => number = () => performance.now()): Store {
  const {
    maxTotalBytes = Number.POSITIVE_INFINITY,
    leaseMs = 6_000,
    mailboxMaxBytes = 64 * 1024 * 1024,
    recordTtlMs = 3_600_000,
  } = limits;

  let totalBytes = 0;
  const onRemoved = ({ log }: { readonly log: MemoryLog }): void => {
    totalBytes -= log.bytes;
  };
  const sessions = createMemorySessions({ limits, recordTtlMs, now, onRemoved });
  const instances = createMemoryInstances({ leaseMs, mailboxMaxBytes, now });
  const secrets = createMemorySecrets();
  const changes = createMemoryChanges();
  const outcomes = createMemoryOutcomes(now);
  const owners = createMemoryTaskOwners(now);
  const rates = createMemoryRates(now);

  /** Runs something that changes a log, and keeps the sum of all. */
  const counted = <T>(log: MemoryLog, change: () => T): T => {
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
      // Down to nine tenths of its size at once: looking for the largest again for each event would be quadratic.
      const enough = Math.min(largest.bytes * 0.9, largest.bytes - 1);
      counted(largest, () => {
        while (largest.bytes > enough) largest.evictOldest();
      });
    }
  };

  // Appends and reads evict what is too old by themselves; this is for sessions that nobody touches.
  const sweep = setInterval(() => {
    const nowMs = now();
    sessions.sweep();
    instances.sweep();
    outcomes.sweep();
    owners.sweep();
    rates.sweep();
    for (const { log } of sessions.values()) counted(log, () => log.evict(nowMs));
  }, sweepEveryMs(limits));
  sweep.unref();

  return {
    log: {
      async append(key, epoch, expectedTail, events) {
        const session = sessions.underEpoch(key, epoch);
        if (typeof session === 'string') return { outcome: session };
        const outcome = counted(session.log, () => session.log.append(expectedTail, events, now()));
        makeRoom();
        return outcome;
      },
      async read(key, stream, after, limit) {
        const log = sessions.get(key)?.log;
        if (log === undefined) return { outcome: 'unknown_stream' };
        return counted(log, () => log.read(stream, after, limit, now()));
      },
    },

    sessions,
    instances,
    secrets,
    changes,
    outcomes,
    owners,
    rates,

    healthyForMs: () => Number.POSITIVE_INFINITY,
    onRecovered: () => undefined, // it is never away

    async close() {
      clearInterval(sweep);
      sessions.clear();
      instances.clear();
      secrets.clear();
      changes.clear();
      outcomes.clear();
      owners.clear();
      rates.clear();
    },
  };
}

/** So that an event outlives its age by a quarter or a second at most; a delay that timers take, whatever the age. */
const sweepEveryMs = ({ maxAgeMs }: LogLimits): number => Math.min(Math.max(maxAgeMs / 4, 1_000), 60_000);
