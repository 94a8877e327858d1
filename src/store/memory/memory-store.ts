import type { LogLimits, SessionRecord, Store } from '../store.ts';
import { ownBytes } from './own-bytes.ts';
import { createSessionLog, type SessionLog } from './session-log.ts';

interface Session {
  readonly record: SessionRecord;
  readonly log: SessionLog;
}

/**
 * A store in this process's memory, for one instance: gone when the process ends.
 *
 * Every call is done before it returns, so its promise tells of something that has already happened; calls are in
 * order by themselves.
 * @param limits of each session's log
 * @param now milliseconds of a clock that never jumps; the default is the monotonic one, so that setting the system's
 *   clock does not empty the logs (HARDENING, fault 29)
 */
export function createMemoryStore(limits: LogLimits, now: () => number = () => performance.now()): Store {
  const sessions = new Map<string, Session>(); // a Map: keys such as `__proto__` are only keys

  // Appends and reads evict what is too old by themselves; this is for sessions that nobody touches.
  const sweep = setInterval(() => {
    const nowMs = now();
    for (const { log } of sessions.values()) log.evict(nowMs);
  }, sweepEveryMs(limits));
  sweep.unref();

  return {
    log: {
      async append(key, epoch, expectedTail, events) {
        const session = sessions.get(key);
        if (session === undefined) return 'no_record';
        if (session.record.epoch !== epoch) return 'fenced';
        return session.log.append(expectedTail, events, now());
      },
      async read(key, stream, after, limit) {
        return sessions.get(key)?.log.read(stream, after, limit, now()) ?? { outcome: 'unknown_stream' };
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
