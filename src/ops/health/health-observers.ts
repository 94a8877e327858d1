import type { ModernObserver } from '../../modern/modern-observer.ts';
import type { GatewaySink } from '../gateway-events.ts';
import { serverFailure } from './server-failure.ts';
import type { ServerHealth } from './server-health.ts';

/** Records the health of servers from the events of their sessions. */
export const observeSessionHealth =
  (health: ServerHealth): GatewaySink =>
  (event) => {
    switch (event.type) {
      case 'session-started':
      case 'backend-restored':
        return health.started(event.name.server);
      case 'backend-ended':
        return health.ended(event.name.server, event.end, { isAtStart: event.isAtStart });
      case 'session-ended': {
        // Other reasons say nothing about the server, or `backend-ended` has reported them.
        const { name, reason } = event;
        if (reason === 'server_start_timeout') health.failed(name.server, serverFailure('no_answer'));
        if (reason === 'crash_loop') health.failed(name.server, serverFailure('crash_loop'));
      }
    }
  };

/** Records the health of servers from the events of processes that modern clients share. */
export const observeSharedServerHealth = (health: ServerHealth): Partial<ModernObserver> => ({
  eraFound: (server) => health.started(server),
  ready: (server) => health.started(server),
  ended: (server, end) => health.ended(server, end),
  // The gateway closes a process that does not answer, or answers like no MCP server.
  startFailed: (server, end) => health.ended(server, end, { isAtStart: true, ifClosed: serverFailure('no_answer') }),
  crashLoop: (server) => health.failed(server, serverFailure('crash_loop')),
});
