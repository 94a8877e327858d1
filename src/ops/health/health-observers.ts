import type { ModernObserver } from '../../modern/modern-observer.ts';
import type { SessionObserver } from '../../session/session-observer.ts';
import { serverFailure } from './server-failure.ts';
import type { ServerHealth } from './server-health.ts';

/** Notes what happens to sessions as far as it says how their server does. */
export const observeSessionHealth = (health: ServerHealth): Partial<SessionObserver> => ({
  started: ({ server }) => health.started(server),
  restored: ({ server }) => health.started(server),
  backendEnded: ({ server }, end, { isAtStart }) => health.ended(server, end, { isAtStart }),
  ended({ server }, { reason }) {
    // Other ends are those of sessions alone, or are told as the end of a backend.
    if (reason === 'server_start_timeout') health.failed(server, serverFailure('no_answer'));
    if (reason === 'crash_loop') health.failed(server, serverFailure('crash_loop'));
  },
});

/** The same for what modern clients share. */
export const observeSharedServerHealth = (health: ServerHealth): Partial<ModernObserver> => ({
  eraFound: (server) => health.started(server),
  ready: (server) => health.started(server),
  ended: (server, end) => health.ended(server, end),
  // The gateway itself closes one that does not answer, or not as it should.
  startFailed: (server, end) => health.ended(server, end, { isAtStart: true, ifClosed: serverFailure('no_answer') }),
  crashLoop: (server) => health.failed(server, serverFailure('crash_loop')),
});
