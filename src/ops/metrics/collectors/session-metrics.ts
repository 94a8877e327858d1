import type { ModernObserver } from '../../../modern/modern-observer.ts';
import type { SessionEndReason } from '../../../session/end-reason.ts';
import type { SessionObserver } from '../../../session/session-observer.ts';
import { StoreUnavailable } from '../../../store/store-unavailable.ts';
import type { Metrics } from '../metrics.ts';

/** End reasons of sessions whose server did not start. */
const startFailures: ReadonlySet<SessionEndReason> = new Set([
  'server_start_failed',
  'server_unauthorized',
  'server_start_timeout',
]);

/** Counts the events of sessions. */
export function countSessions(metrics: Metrics): Partial<SessionObserver> {
  const { add, startSeconds } = counters(metrics);
  const live = metrics.tallies('eventsDelivered').of('live');
  const replayed = metrics.tallies('eventsDelivered').of('replayed');
  return {
    started({ server }, { startMs }) {
      add('sessionStarts', server);
      startSeconds(server, startMs);
    },
    ended({ server }, { reason }) {
      add('sessionEnds', server, reason);
      if (reason === 'crash_loop') add('crashLoops', server);
      if (startFailures.has(reason)) add('startFailures', server);
    },
    adopted: ({ server }) => add('takeovers', server),
    restored: ({ server }, { isWaking }) => add(isWaking ? 'wakings' : 'restores', server),
    hibernated: ({ server }) => add('hibernations', server),
    dropped: ({ server }, reason) => add('dropped', server, reason),
    failed: () => add('internalErrors', 'session'),
    clusterFailed(cause) {
      if (!(cause instanceof StoreUnavailable)) add('internalErrors', 'cluster');
    },
    streamsOf(server) {
      return {
        resumed: (outcome) => add('resumes', server, outcome),
        delivered(count, source) {
          (source === 'live' ? live : replayed).value += count;
        },
      };
    },
  };
}

/** Counts the events of modern servers. */
export function countSharedServers(metrics: Metrics): Partial<ModernObserver> {
  const { add, startSeconds } = counters(metrics);
  return {
    ready: (server, { startMs }) => startSeconds(server, startMs),
    startFailed: (server, _, { isByProbe }) => !isByProbe && add('startFailures', server),
    crashLoop: (server) => add('crashLoops', server),
    clientCut: (server) => add('clientsCut', server),
    failed: () => add('internalErrors', 'shared_process'),
    dropped: (server, reason) => add('dropped', server, reason),
  };
}

/** Helpers for events that are too rare to keep a reference to their number. */
function counters(metrics: Metrics) {
  return {
    add(key: Parameters<Metrics['tallies']>[0], ...labels: string[]): void {
      metrics.tallies(key).of(...labels).value += 1;
    },
    startSeconds(server: string, ms: number): void {
      metrics
        .distributions('startSeconds')
        .of(server)
        .observe(ms / 1_000);
    },
  };
}
