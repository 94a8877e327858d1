import type { GatewaySink } from '../gateway-events.ts';
import { serverFailure } from './server-failure.ts';
import type { ServerHealth } from './server-health.ts';

/** Records the health of servers from their events, and those of their sessions. */
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
      case 'server-answered':
        health.started(event.server);
        if (event.era !== undefined) health.eraSeen(event.server, event.era);
        return;
      case 'server-silent':
        return health.failed(event.server, serverFailure('no_answer'), event);
      case 'view-server-ready':
        return health.started(event.member);
      case 'view-server-down': {
        const { member, end, isAtStart } = event;
        // The gateway closes a server that does not answer in time.
        return health.ended(member, end, isAtStart ? { isAtStart, ifClosed: serverFailure('no_answer') } : {});
      }
      case 'command-not-found':
        return health.failed(event.server, serverFailure('not_found'), { ...event, help: undefined, output: [] });
      case 'spare-ended':
        return health.ended(event.server, event.end, { isAtStart: true });
      case 'transport-found':
        return health.transportFound(event.server, event.transport);
      case 'era-seen':
        return health.eraSeen(event.server, event.era);
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
      case 'view-crash-loop':
        return health.failed(event.member, serverFailure('crash_loop'));
    }
  };
