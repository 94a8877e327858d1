import { detach } from '../../../util/boundary.ts';
import type { MemoryTaskOwners } from '../memory-owners.ts';
import type { MemoryTables } from '../memory-tables.ts';
import type { Change, Ownership } from './change.ts';

/** The data that the journal keeps. */
export interface JournaledTables {
  readonly tables: MemoryTables;
  readonly taskOwners: MemoryTaskOwners;
}

/**
 * Applies a change that was stored before. A change of an unknown session has no effect: the session follows as a
 * whole, or it has ended.
 */
export function applyChange({ tables, taskOwners }: JournaledTables, change: Change): void {
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
    case 'renew':
      return sessions.renew(change.keys);
    case 'end':
      return sessions.bury(change.key, change.tombstone);
    // These tables have taken the value when the call returns. Their promises never reject.
    case 'secret':
      return detach('store', tables.secrets.keep(change.name, change.value));
    case 'outcome':
      return detach('store', tables.outcomes.keep(change.call, change.round, change.value, change.ttlMs));
    case 'task':
      return detach('store', taskOwners.set(change.task, change.value, change.ttlMs));
    case 'base':
      return;
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

/** The changes that make these tables from empty ones. They are made one by one, so that memory is not copied at once. */
export function* allChanges({ tables, taskOwners }: JournaledTables): Generator<Change, void> {
  const { sessions, secrets, outcomes } = tables;
  for (const [name, value] of [...secrets.entries()]) yield { kind: 'secret', name, value };
  for (const [key, tombstone] of [...sessions.tombstones()]) {
    // A session may have followed this end meanwhile.
    if (sessions.get(key) === undefined) yield { kind: 'end', key, tombstone };
  }
  for (const key of [...sessions.keys()]) {
    const session = sessions.get(key);
    if (session !== undefined) yield { kind: 'session', key, session: { ...session, log: session.log.contents() } };
  }
  for (const [call, round, value, ttlMs] of [...outcomes.kept()]) yield { kind: 'outcome', call, round, value, ttlMs };
  for (const [task, value, ttlMs] of [...taskOwners.known()]) yield { kind: 'task', task, value, ttlMs };
}
