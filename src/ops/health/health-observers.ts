import type { ModernObserver } from '../../modern/modern-observer.ts';
import type { SessionObserver } from '../../session/session-observer.ts';
import { serverFailure } from './server-failure.ts';
import type { ServerHealth } from './server-health.ts';

/** Records the health of servers from the events of their sessions. */
export const observeSessionHealth = (health: ServerHealth): Partial<SessionObserver> => ({
  started: ({ server }) => health.started(server),
  restored: ({ server }) => health.started(server),
  backendEnded: ({ server }, end, { isAtStart }) => health.ended(server, end, { isAtStart }),
  ended({ server }, { reason }) {
    // Other reasons say nothing about the server, or `backendEnded` has reported them.
    if (reason === 'server_start_timeout') health.failed(server, serverFailure('no_answer'));
    if (reason === 'crash_loop') health.failed(server, serverFailure('crash_loop'));
  },
});

/** Records the health of servers from the events of processes that modern clients share. */
export const observeSharedServerHealth = (health: ServerHealth): Partial<ModernObserver> => ({
  eraFound: (server) => health.started(server),
  ready: (server) => health.started(server),
  ended: (server, end) => health.ended(server, end),
  // The gateway closes a process that does not answer, or answers like no MCP server.
  startFailed: (server, end) => health.ended(server, end, { isAtStart: true, ifClosed: serverFailure('no_answer') }),
  crashLoop: (server) => health.failed(server, serverFailure('crash_loop')),
});
