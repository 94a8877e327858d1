import type { Session } from '../../session/session.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { detach } from '../../util/boundary.ts';
import type { OwnershipGuard } from './guard.ts';
import type { Lease } from './lease.ts';

/** So many sessions are registered at once: a store that has just come back has others to answer too. */
const maxAtOnce = 50;

/**
 * Registers sessions in the current term, first those that somebody waits for, then those that were used last. Those that
 * others have taken are ended here, and so are those that were deleted; the rest may act again. A term that passes meanwhile
 * has a registration of its own, which makes this one outdated.
 */
export async function registerAll(
  sessions: Iterable<Session>,
  lease: Lease,
  guard: OwnershipGuard,
  onFailed: (cause: unknown) => void,
): Promise<void> {
  const { term } = lease;
  const next = inOrder(sessions, guard);
  const register = async (): Promise<void> => {
    for (let session = next(); session !== undefined && lease.term === term; session = next()) {
      const said = await session.register().catch((cause: unknown) => {
        if (!(cause instanceof StoreUnavailable)) onFailed(cause); // else the session has ended meanwhile
        return undefined;
      });
      if (said === 'registered') {
        session.check();
        guard.verify(session, term);
      } else if (said === 'fenced') detach('cluster', session.end('moved'));
      else if (said === 'ended') detach('cluster', session.end('deleted'));
    }
  };
  await Promise.all(Array.from({ length: maxAtOnce }, register));
}

/** Gives one after the other: with thousands the last one comes seconds after the first, and requests do not wait for long. */
function inOrder(sessions: Iterable<Session>, guard: OwnershipGuard): () => Session | undefined {
  const waiting = [...sessions].filter(({ isReady }) => isReady);
  waiting.sort((a, b) => a.idleness.lastActivityAt - b.idleness.lastActivityAt);
  const left = new Set(waiting);
  return () => {
    for (const session of guard.wanted) if (left.delete(session)) return session;
    for (let session = waiting.pop(); session !== undefined; session = waiting.pop())
      if (left.delete(session)) return session;
    return undefined;
  };
}
