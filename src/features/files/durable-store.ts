import type { MemoryTables } from '../../core/store/memory/memory-tables.ts';
import type { SessionRecords } from '../../core/store/session-records.ts';
import type { ClusterStore } from '../../core/store/store.ts';
import type { Engine } from './engine.ts';
import type { StoredChanges } from './stored-changes.ts';

/**
 * Offers the tables as a store. Each change takes effect in the tables, is queued for the files in the same turn, and
 * is reported when it is in the files. While the files cannot be written, a change is refused before it takes effect.
 * A change whose write failed stays in the tables and in the queue: its repetition finds it done and waits for the files.
 *
 * Rates, reservations and announced changes are not kept. They matter for seconds, the tables themselves have a limit, and
 * nobody subscribes across a restart.
 */
export function createDurableStore(
  tables: MemoryTables,
  engine: Engine,
  stored: StoredChanges,
): Pick<ClusterStore, 'log' | 'sessions' | 'values' | 'changes' | 'rates' | 'reservations'> {
  const { sessions, values } = tables;
  /** Sessions whose newest events may not be in the files yet. A reader waits for these (P5). */
  const unsettled = new Set<string>();

  /** Makes a change and waits until it is in the files, also if an earlier attempt made it. */
  const change = async <T>(apply: () => T): Promise<Awaited<T>> => {
    engine.requireWritable();
    const result = apply();
    if (!engine.isSettled) await engine.settled();
    return await result;
  };

  /** Makes a change of a session, of which the files get what the tables have changed. */
  const changeSession =
    <A extends [key: string, ...others: unknown[]], R>(method: (...args: A) => R) =>
    (...args: A) =>
      change(() => {
        const result = method(...args);
        stored.addChanges(args[0]);
        return result;
      });

  const records: SessionRecords = {
    find: async (key) => sessions.find(key),
    create: changeSession(sessions.create),
    amend: changeSession(sessions.amend),
    register: (key, record, tail, log, registrant) =>
      change(() => {
        const isKnown = sessions.get(key)?.record.epoch === record.epoch;
        const outcome = sessions.register(key, record, tail, log, registrant);
        // Otherwise the log has another state, too.
        if (isKnown) stored.addChanges(key);
        else if (outcome === 'registered') stored.addWhole(key);
        return outcome;
      }),
    takeOver: changeSession(sessions.takeOver),
    confirmTakeover: changeSession(sessions.confirmTakeover),
    release: changeSession(sessions.release),
    renew: (keys) =>
      change(() => {
        sessions.renew(keys);
        for (const key of keys) stored.addExpiry(key);
      }),
    end: changeSession(sessions.end),
  };

  return {
    sessions: records,
    log: {
      append: (key, epoch, expectedTail, events) =>
        change(() => {
          const result = tables.log.append(key, epoch, expectedTail, events);
          if (result.outcome === 'stored' && events.length > 0) {
            if (engine.isSettled) unsettled.clear();
            unsettled.add(key);
            stored.add({ kind: 'append', key, epoch, events });
          }
          return result;
        }),
      async read(key, stream, after, limit) {
        if (!engine.isSettled && unsettled.has(key)) await engine.settled();
        return tables.log.read(key, stream, after, limit);
      },
    },
    values: {
      get: async (kind, name) => values.get(kind, name),
      set: (of, name, value, ttlMs) =>
        change(() => {
          values.set(of, name, value, ttlMs);
          stored.add({ kind: 'value', of, name, value, ttlMs });
        }),
      keep: (of, name, candidate, ttlMs) =>
        change(() => {
          const value = values.keep(of, name, candidate, ttlMs);
          stored.add({ kind: 'value', of, name, value, ttlMs });
          return value;
        }),
    },
    changes: tables.changes,
    rates: tables.rates,
    reservations: tables.reservations,
  };
}
