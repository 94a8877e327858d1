import type { LogLimits, SessionRecord, Store } from '../store.ts';
import { ownBytes } from './own-bytes.ts';
import { createSessionLog, type SessionLog } from './session-log.ts';

interface Session {
  readonly record: SessionRecord;
  readonly log: SessionLog;
}

/** The limits of the logs, each and together. */
export interface MemoryLimits extends LogLimits {
  /** Bytes of the events of all sessions; over it, the session that holds most loses its oldest. None if not given. */
  readonly maxTotalBytes?: number;
}

/**
 * A store in this process's memory, for one instance: gone when the process ends.
 *
 * Every call is done before it returns, so its promise tells of something that has already happened; calls are in
 * order by themselves.
 * @param now milliseconds of a clock that never jumps; the default is the monotonic one, so that setting the system's
 *   clock does not empty the logs (HARDENING, fault 29)
 */
export function createMemoryStore(limits: MemoryLimits, now: () => number = () => performance.now()): Store {
  const { maxTotalBytes = Number.POSITIVE_INFINITY } = limits;
  const sessions = new Map<string, Session>(); // a Map: keys such as `__proto__` are only keys

  let totalBytes = 0;

  /** Runs something that changes a log, and keeps the sum of all. */
  const counted = <T>(log: SessionLog, change: () => T): T => {
    totalBytes -= log.bytes;
    const outcome = change();
    totalBytes += log.bytes;
    return outcome;
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
    for (const { log } of sessions.values()) counted(log, () => log.evict(nowMs));
  }, sweepEveryMs(limits));
  sweep.unref();

  return {
    log: {
      async append(key, epoch, expectedTail, events) {
        const session = sessions.get(key);
        if (session === undefined) return 'no_record';
        if (session.record.epoch !== epoch) return 'fenced';
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

    sessions: {
      async create(key, record) {
        // Going on would give the events of one session to another (P11); a key is a hash of 256 random bits: a fault.
        if (sessions.has(key)) throw new Error('a session with this key exists already');
        const kept = { ...record, initialize: ownBytes(record.initialize) };
        sessions.set(key, { record: kept, log: createSessionLog(record.epoch, limits) });
      },
      async find(key) {
        return sessions.get(key)?.record;
      },
      async end(key) {
        totalBytes -= sessions.get(key)?.log.bytes ?? 0;
        sessions.delete(key);
      },
    },

    async close() {
      clearInterval(sweep);
      sessions.clear();
    },
  };
}

/** So that an event outlives its age by a quarter or a second at most; a delay that timers take, whatever the age. */
const sweepEveryMs = ({ maxAgeMs }: LogLimits): number => Math.min(Math.max(maxAgeMs / 4, 1_000), 60_000);
