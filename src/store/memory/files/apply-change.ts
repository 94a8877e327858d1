import type { MemoryTables } from '../memory-tables.ts';
import type { Change, Ownership } from './change.ts';

/**
 * Applies a change that was stored before. A change of an unknown session has no effect: the session follows as a
 * whole, or it has ended.
 */
export function applyChange(tables: MemoryTables, change: Change): void {
  const { sessions } = tables;
  switch (change.kind) {
    case 'session':
      return tables.restore(change.key, change.session);
    case 'append':
      return tables.replay(change.key, change.epoch, change.events);
    case 'amend': {
      const epoch = sessions.get(change.key)?.record.epoch;
      if (epoch !== undefined) sessions.amend(change.key, epoch, change.changes);
      return;
    }
    case 'owner':
      return setOwner(tables, change.key, change);
    case 'end':
      return sessions.bury(change.key, change.tombstone);
    case 'value':
      return tables.values.set(change.of, change.name, change.value, change.ttlMs);
  }
}

function setOwner({ sessions }: MemoryTables, key: string, { owner, epoch, takeovers, term }: Ownership): void {
  const session = sessions.get(key);
  if (session === undefined) return;
  if (session.record.epoch !== epoch) session.log.beginEpoch(epoch);
  session.record = { ...session.record, owner, epoch };
  session.takeovers = takeovers;
  if (term === undefined) delete session.term;
  else session.term = term;
  sessions.renew([key]);
}
