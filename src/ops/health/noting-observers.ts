import type { ModernObserver } from '../../modern/observer.ts';
import type { SessionObserver } from '../../session/observer.ts';
import { failureOf } from './server-failure.ts';
import type { ServerHealth } from './server-health.ts';

/** Tells the observer, and notes what it means for the server. */
export function notingSessions(observer: SessionObserver, health: ServerHealth): SessionObserver {
  return {
    ...observer,
    started(name, details) {
      health.started(name.server);
      observer.started(name, details);
    },
    restored(name, details) {
      health.started(name.server);
      observer.restored(name, details);
    },
    backendEnded(name, end) {
      health.ended(name.server, end);
      observer.backendEnded(name, end);
    },
    ended(name, details) {
      // Other ends are those of sessions alone, or are told as the end of a backend.
      if (details.reason === 'server_start_timeout') health.failed(name.server, failureOf('no_answer'));
      if (details.reason === 'crash_loop') health.failed(name.server, failureOf('crash_loop'));
      observer.ended(name, details);
    },
  };
}

/** The same for what modern clients share. */
export function notingModern(observer: ModernObserver, health: ServerHealth): ModernObserver {
  return {
    ...observer,
    eraFound(server, details) {
      health.started(server);
      observer.eraFound(server, details);
    },
    ready(server, details) {
      health.started(server);
      observer.ready(server, details);
    },
    ended(server, end, details) {
      health.ended(server, end);
      observer.ended(server, end, details);
    },
    startFailed(server, end) {
      // The gateway itself closes one that does not answer, or not as it should.
      health.ended(server, end, failureOf('no_answer'));
      observer.startFailed(server, end);
    },
    crashLoop(server, details) {
      health.failed(server, failureOf('crash_loop'));
      observer.crashLoop(server, details);
    },
  };
}
