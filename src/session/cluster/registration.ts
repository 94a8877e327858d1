import { StoreUnavailable } from '../../store/store-unavailable.ts';
import type { Session } from '../session.ts';
import type { Guard } from './guard.ts';
import type { Lease } from './lease.ts';

/** So many sessions are registered at once: a store that has just come back has others to answer too. */
const maxAtOnce = 50;

/**
 * Registers sessions in the current term: those that others have taken are ended here, and so are those that were deleted;
 * the rest may act again. A term that passes meanwhile has a registration of its own, which makes this one outdated.
 */
export async function registerAll(
  sessions: Iterable<Session>,
  lease: Lease,
  guard: Guard,
  onFailed: (cause: unknown) => void,
): Promise<void> {
  const { term } = lease;
  const waiting = [...sessions].filter(({ isReady }) => isReady);
  const register = async (): Promise<void> => {
    for (let session = waiting.pop(); session !== undefined && lease.term === term; session = waiting.pop()) {
      const said = await session.register().catch((cause: unknown) => {
        if (!(cause instanceof StoreUnavailable)) onFailed(cause); // else the session has ended meanwhile
        return undefined;
      });
      if (said === 'registered') {
        session.check();
        guard.verify(session, term);
      } else if (said === 'fenced') void session.end('moved');
      else if (said === 'ended') void session.end('deleted');
    }
  };
  await Promise.all(Array.from({ length: maxAtOnce }, register));
}
