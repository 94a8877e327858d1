import { isRefusalCause } from '../../../core/auth/refusal-causes.ts';
import type { GatewaySink } from '../../../core/ops/gateway-events.ts';
import type { SessionEndReason } from '../../../core/session/end-reason.ts';
import { StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import type { Metrics } from '../metrics.ts';

/** End reasons of sessions whose server did not start. */
const startFailures: ReadonlySet<SessionEndReason> = new Set([
  'server_start_failed',
  'server_unauthorized',
  'server_start_timeout',
  'upstream_token_refused',
  'upstream_token_unavailable',
]);

/** Counts all events that are too rare for a meter, except those of calls. */
export function countEvents(metrics: Metrics): GatewaySink {
  const { add, addDropped, startSeconds, policySeconds } = counters(metrics);
  return (event) => {
    switch (event.type) {
      case 'session-started':
        add('sessionStarts', event.name.server);
        return startSeconds(event.name.server, event.startMs);
      case 'session-ended': {
        const { name, reason } = event;
        add('sessionEnds', name.server, reason);
        if (reason === 'crash_loop') add('crashLoops', name.server);
        if (startFailures.has(reason)) add('startFailures', name.server);
        return;
      }
      case 'session-adopted':
        return add('takeovers', event.name.server);
      case 'backend-restored':
        return add(event.restoration.isWaking ? 'wakings' : 'restores', event.name.server);
      case 'session-hibernated':
        return add('hibernations', event.name.server);
      case 'session-message-dropped':
        return addDropped(event.name.server, event.reason, event.count);
      case 'stream-resumed':
        return add('resumes', event.server, event.outcome);
      case 'session-failed':
        return add('internalErrors', 'session');
      case 'shared-server-ready':
        return startSeconds(event.server, event.startMs);
      case 'shared-start-failed':
        if (!event.isByProbe) add('startFailures', event.server);
        return;
      case 'shared-crash-loop':
        return add('crashLoops', event.server);
      case 'view-crash-loop':
        return add('crashLoops', event.member);
      case 'client-cut':
        return add('clientsCut', event.server);
      case 'session-client-cut':
        return add('clientsCut', event.name.server);
      case 'shared-message-dropped':
        return addDropped(event.server, event.reason, event.count);
      case 'shared-server-failed':
        return add('internalErrors', 'shared_process');
      case 'spare-output-dropped':
        return add('dropped', event.server, 'unused');
      case 'shared-output-dropped':
        return add('dropped', event.server, 'unattributable');
      case 'view-server-missing':
        return add('viewMissing', event.server, event.member, event.reason);
      case 'tool-changed':
        return add('toolChanges', event.server);
      case 'task':
        return add('tasks', event.server, event.what);
      case 'upstream-token':
        return add('upstreamTokens', event.server, event.outcome);
      case 'policy-asked':
        add('policyDecisions', event.server, event.phase, event.decision);
        return policySeconds(event.server, event.durationMs);
      case 'sender-refused': {
        const cause = event.challenge.detail?.why;
        if (cause !== undefined && isRefusalCause(cause)) add('refusedCredentials', event.server, cause);
        return;
      }
      case 'connection-dropped':
      case 'connection-flooded':
        return add('droppedConnections');
      case 'peer-refused':
        return add('peersRefused', event.reason);
      case 'store-command-failed':
        return add('redisErrors', event.reason);
      case 'store-failed':
        if (!(event.cause instanceof StoreUnavailable)) add('internalErrors', 'cluster');
    }
  };
}

/** Helpers for events that are too rare to keep a reference to their number. */
function counters(metrics: Metrics) {
  return {
    add(key: Parameters<Metrics['tallies']>[0], ...labels: string[]): void {
      metrics.tallies(key).of(...labels).value += 1;
    },
    addDropped(server: string, reason: string, count = 1): void {
      metrics.tallies('dropped').of(server, reason).value += count;
    },
    startSeconds(server: string, ms: number): void {
      metrics
        .distributions('startSeconds')
        .of(server)
        .add(ms / 1_000);
    },
    policySeconds(server: string, ms: number): void {
      metrics
        .distributions('policySeconds')
        .of(server)
        .add(ms / 1_000);
    },
  };
}
