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

  const appendOwner = (key: string): void => {
    const session = sessions.get(key);
    if (session === undefined) return;
    const { record, takeovers, term } = session;
    stored.add({ kind: 'owner', key, owner: record.owner, epoch: record.epoch, takeovers, term });
  };

  const appendExpiry = (key: string): void => {
    const expiresAtMs = sessions.get(key)?.expiresAtMs;
    if (expiresAtMs !== undefined && Number.isFinite(expiresAtMs)) stored.setExpiry(key, expiresAtMs);
  };

  const records: SessionRecords = {
    create: (key, record, how) =>
      change(() => {
        const before = sessions.get(key);
        sessions.create(key, record, how);
        if (before === undefined) stored.addWhole(key);
      }),
    find: async (key) => sessions.find(key),
    amend: (key, epoch, changes) =>
      change(() => {
        const outcome = sessions.amend(key, epoch, changes);
        if (outcome === 'done') stored.add({ kind: 'amend', key, changes });
        return outcome;
      }),
    register: (key, record, tail, log, registrant) =>
      change(() => {
        const isKnown = sessions.get(key)?.record.epoch === record.epoch;
        const outcome = sessions.register(key, record, tail, log, registrant);
        if (outcome === 'registered') isKnown ? appendOwner(key) : stored.addWhole(key);
        return outcome;
      }),
    takeOver: (key, from, owner) =>
      change(() => {
        const outcome = sessions.takeOver(key, from, owner);
        if (outcome.outcome === 'taken') appendOwner(key);
        else if (outcome.outcome === 'worn_out') stored.addWhole(key);
        return outcome;
      }),
    confirmTakeover: (key, epoch) =>
      change(() => {
        const outcome = sessions.confirmTakeover(key, epoch);
        if (outcome === 'done') appendOwner(key);
        return outcome;
      }),
    release: (key, epoch) =>
      change(() => {
        const outcome = sessions.release(key, epoch);
        if (outcome === 'done') appendOwner(key);
        return outcome;
      }),
    renew: (keys) =>
      change(() => {
        sessions.renew(keys);
        for (const key of keys) appendExpiry(key);
      }),
    end: (key, epoch) =>
      change(() => {
        sessions.end(key, epoch);
        stored.addWhole(key);
      }),
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
