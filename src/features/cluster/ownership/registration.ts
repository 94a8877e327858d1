import { setTimeout as delay } from 'node:timers/promises';
import type { Session } from '../../../core/session/session.ts';
import { StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import { detach } from '../../../core/util/boundary.ts';
import type { OwnershipGuard } from './guard.ts';
import type { Lease } from './lease.ts';

/** How many sessions are registered at once. A store that has just come back has other work too. */
const maxAtOnce = 50;

/**
 * Registers the sessions in the current term: first those that requests wait for, then the most recently used. Sessions
 * that other instances have taken, or that were deleted, are ended here. The others may act again. If a new term begins
 * meanwhile, its own registration replaces this one, also where this one waits for the store. A store that comes and goes
 * begins a term each time, and what all of them try again could keep it away for ever.
 */
export async function registerAll(
  sessions: Iterable<Session>,
  lease: Lease,
  guard: OwnershipGuard,
  onFailed: (cause: unknown) => void,
): Promise<void> {
  const { term } = lease;
  const isOutdated = (): boolean => lease.term !== term;
  const takeNext = createQueue(sessions, guard);
  const register = async (): Promise<void> => {
    for (let session = takeNext(); session !== undefined && !isOutdated(); session = takeNext()) {
      const outcome = await session.log.register(isOutdated).catch((cause: unknown) => {
        if (!(cause instanceof StoreUnavailable)) onFailed(cause); // otherwise the session has ended meanwhile
        return undefined;
      });
      if (outcome === 'registered') {
        if (lease.unsettledMs > 0) continue; // see `registerAndSettle`
        session.log.check();
        guard.verify(session, term);
      } else if (outcome === 'fenced') detach('cluster', session.end('moved'));
      else if (outcome === 'ended') detach('cluster', session.end('deleted'));
    }
  };
  await Promise.all(Array.from({ length: maxAtOnce }, register));
}

/**
 * Registers the sessions, and those that another instance may have taken over once more when that instance has had its
 * time to register. Only then may they act.
 */
export async function registerAndSettle(
  sessions: () => Iterable<Session>,
  lease: Lease,
  guard: OwnershipGuard,
  onFailed: (cause: unknown) => void,
): Promise<void> {
  const { term } = lease;
  await registerAll(sessions(), lease, guard, onFailed);
  if (lease.term !== term) return;
  lease.noteRegistered();
  const waitMs = lease.unsettledMs;
  if (waitMs === 0) return;
  await delay(waitMs, undefined, { ref: false });
  if (lease.term === term) await registerAll(sessions(), lease, guard, onFailed);
}

/**
 * Yields one session after the other. With thousands of sessions the last one comes seconds after the first, and
 * requests do not wait that long.
 */
function createQueue(sessions: Iterable<Session>, guard: OwnershipGuard): () => Session | undefined {
  const waiting = [...sessions].filter(({ isReady }) => isReady);
  waiting.sort((a, b) => a.idleness.lastActivityAt - b.idleness.lastActivityAt);
  const remaining = new Set(waiting);
  return () => {
    for (const session of guard.wanted) if (remaining.delete(session)) return session;
    for (let session = waiting.pop(); session !== undefined; session = waiting.pop())
      if (remaining.delete(session)) return session;
    return undefined;
  };
}
