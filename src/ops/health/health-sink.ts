import type { GatewaySink } from '../gateway-events.ts';
import { serverFailure } from './server-failure.ts';
import type { ServerHealth } from './server-health.ts';

/** Records the health of servers from the events of their sessions and shared processes. */
export const createHealthSink =
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
        return;
      }
      case 'era-found':
      case 'shared-server-ready':
        return health.started(event.server);
      case 'shared-server-ended':
        return health.ended(event.server, event.end);
      case 'shared-start-failed': {
        // The gateway closes a process that does not answer, or answers like no MCP server.
        const ifClosed = serverFailure('no_answer');
        return health.ended(event.server, event.end, { isAtStart: true, ifClosed });
      }
      case 'shared-crash-loop':
        return health.failed(event.server, serverFailure('crash_loop'));
    }
  };
