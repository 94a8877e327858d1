import type { PeerStates } from '../../registry/session-cluster.ts';
import type { Readiness } from '../../registry/sessions.ts';
import type { ServerOutcome, ServerStatus } from './server-health.ts';

/** A reason why an instance is not ready, or only degraded. */
export interface ReadinessReason {
  readonly reason: 'draining' | 'store_degraded' | 'store_unavailable' | 'server_down' | 'instances_unreachable';
  /** The reason as a sentence. */
  readonly detail: string;
}

/** The readiness of an instance, with reasons. */
export interface ReadinessReport {
  readonly status: Readiness;
  /** Empty if the instance is ready. */
  readonly reasons: readonly ReadinessReason[];
  /** How many other instances hold their lease, by whether they answer this one. Absent if there can be none. */
  readonly peers?: { readonly reachable: number; readonly unreachable: number };
}

const reasons = {
  draining: { reason: 'draining', detail: 'This instance is shutting down and accepts no new sessions.' },
  degraded: {
    reason: 'store_degraded',
    detail: 'The shared store does not answer. The sessions of this instance continue.',
  },
  unavailable: {
    reason: 'store_unavailable',
    detail:
      'The shared store has not answered for longer than the lease time. This instance opens no sessions until the store answers.',
  },
  fileStoreDown: {
    reason: 'store_unavailable',
    detail:
      'The store in files cannot be written. This instance opens no sessions until it can. The log shows the cause, such as a full disk.',
  },
  unreachable: {
    reason: 'instances_unreachable',
    detail:
      'Another instance does not answer this one, so its sessions cannot be served here. The log and the status page name it.',
  },
  serverDown: {
    reason: 'server_down',
    detail: 'A server with --defaults.probes.required does not answer its probes.',
  },
} as const satisfies Record<string, ReadinessReason>;

/**
 * Reports whether an instance is ready.
 *
 * A failed server makes the instance unready only where the operator requires the server. Other instances most likely
 * have the same failure, so a load balancer would have no instance left. Other servers of the instance are not affected
 * either. Only probes count, because a crash that one client met is no measure for all.
 * @param isFileStoreUp false while the store in files cannot be written; true with any other store
 */
export function readinessReport(
  readiness: Readiness,
  servers: readonly ServerStatus[],
  peers?: PeerStates,
  isFileStoreUp = true,
): ReadinessReport {
  const more = peers && { peers: { reachable: peers.reachable, unreachable: peers.unreachable.length } };
  const instanceReasons = [
    ...(readiness === 'ready' ? [] : [reasons[readiness]]),
    ...(peers?.unreachable.length ? [reasons.unreachable] : []),
  ];
  const causes = [
    ...(isFileStoreUp ? [] : [reasons.fileStoreDown]),
    ...(servers.some(({ isRequired, probe }) => isRequired && probe === 'down') ? [reasons.serverDown] : []),
  ];
  if (causes.length === 0) return { status: readiness, reasons: instanceReasons, ...more };
  return {
    status: readiness === 'draining' ? readiness : 'unavailable',
    reasons: [...instanceReasons, ...causes],
    ...more,
  };
}

/** Returns a server as `/readyz` shows it, with null for unknown values. */
export function serverReadiness({ server, transport, era, last, probe }: ServerStatus): object {
  return {
    name: server,
    transport,
    era: era ?? null,
    last: last === undefined ? null : outcomeFields(last),
    probe: probe ?? null,
  };
}

function outcomeFields(outcome: ServerOutcome): object {
  const at = outcome.at.toISOString();
  if (outcome.state === 'started') return { outcome: 'started', at };
  const { reason, why, help = null } = outcome;
  return { outcome: 'failed', reason, why, help, at };
}
