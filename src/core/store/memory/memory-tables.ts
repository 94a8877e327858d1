import type { EventLog, LogLimits, NewEvent } from '../event-log.ts';
import type { Immediate } from '../immediate.ts';
import { ChangeSubscribers } from '../shared/followers.ts';
import type { Changes, Rates } from '../shared/shared-data.ts';
import { type LogContents, MemoryLog } from './memory-log.ts';
import { createMemoryReservations } from './memory-reservations.ts';
import { createMemorySessions, type MemorySession } from './memory-sessions.ts';
import { createMemoryValues, type OnValueRemoved } from './memory-values.ts';

/** The limits of each log and of all logs together, and the lifetime of sessions. */
export interface MemoryLimits extends LogLimits {
  /**
   * The limit of the bytes of all sessions' events; none by default. The session with the most bytes is evicted first.
   */
  readonly maxTotalBytes?: number;
  /** For how long an unused session is kept; an hour by default. Infinity keeps the session until it is ended. */
  readonly recordTtlMs?: number;
  readonly onValueRemoved?: OnValueRemoved;
}

/** A session with the contents of its log, as another process stored it. */
export type StoredSession = Omit<MemorySession, 'log'> & { readonly log: LogContents };

/** The data of a store in the memory of this process. */
export type MemoryTables = ReturnType<typeof createMemoryTables>;

/**
 * Makes empty tables. Every change has taken effect when its method returns, so changes take effect in the order of their
 * calls.
 * @param now milliseconds of a clock that never jumps
 */
export function createMemoryTables(limits: MemoryLimits, now: () => number) {
  const { maxTotalBytes = Number.POSITIVE_INFINITY, recordTtlMs = 3_600_000 } = limits;

  let totalBytes = 0;
  const onRemoved = ({ log }: { readonly log: MemoryLog }): void => {
    totalBytes -= log.bytes;
  };
  const sessions = createMemorySessions({ limits, recordTtlMs, now, onRemoved });
  const values = createMemoryValues(now, limits.onValueRemoved);
  const changes = createMemoryChanges();
  const rates = createMemoryRates(now);
  const reservations = createMemoryReservations(now);

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

  const log: Immediate<EventLog> = {
    append(key, epoch, expectedTail, events) {
      const session = sessions.underEpoch(key, epoch);
      if (typeof session === 'string') return { outcome: session };
      const outcome = trackBytes(session.log, () => session.log.append(expectedTail, events, now()));
      makeRoom();
      return outcome;
    },
    read(key, stream, after, limit) {
      const found = sessions.get(key)?.log;
      if (found === undefined) return { outcome: 'unknown_stream' };
      return trackBytes(found, () => found.read(stream, after, limit, now()));
    },
  };

  return {
    log,
    sessions,
    values,
    changes,
    rates,
    reservations,

    /** Puts a stored session in place of one with the same key. */
    restore(key: string, stored: StoredSession): void {
      const restored = new MemoryLog(stored.log.epoch, limits);
      restored.load(stored.log, now());
      sessions.restore(key, { ...stored, log: restored });
      totalBytes += restored.bytes;
      makeRoom();
    },
    /** Appends events that were stored before to a session that is known. */
    replay(key: string, epoch: number, events: readonly NewEvent[]): void {
      const session = sessions.underEpoch(key, epoch);
      if (typeof session === 'string') return;
      trackBytes(session.log, () => session.log.replay(events, now()));
      makeRoom();
    },
    /** Removes what is too old, also in sessions that nobody uses. */
    sweep(): void {
      const nowMs = now();
      sessions.sweep();
      values.sweep();
      rates.sweep();
      reservations.sweep();
      for (const { log } of sessions.values()) trackBytes(log, () => log.evict(nowMs));
    },
  };
}

/** Limits how long an event outlives its maximum age: a quarter of that age, but between 1 s and 60 s. */
export const sweepEveryMs = ({ maxAgeMs }: LogLimits): number => Math.min(Math.max(maxAgeMs / 4, 1_000), 60_000);

/** Makes changes that are announced within this process, before `publish` returns. */
export function createMemoryChanges(): Changes {
  const subscribers = new ChangeSubscribers();
  return {
    async publish(topic, text) {
      subscribers.notify(topic, text);
    },
    async subscribe(topic, listener) {
      return subscribers.add(topic, listener);
    },
  };
}

/** Makes an empty table of rates, which live as long as the process. `sweep` removes those whose debts are paid. */
function createMemoryRates(now: () => number): Rates & { sweep(): void } {
  const paidAt = new Map<string, number>();
  return {
    async use(name, costMs) {
      const nowMs = now();
      const paidMs = Math.max(paidAt.get(name) ?? 0, nowMs) + costMs;
      paidAt.set(name, paidMs);
      return paidMs - nowMs;
    },
    sweep() {
      const nowMs = now();
      for (const [name, paidMs] of paidAt) if (paidMs <= nowMs) paidAt.delete(name);
    },
  };
}
