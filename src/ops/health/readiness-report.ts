import type { Readiness } from '../../registry/readiness.ts';
import type { ServerOutcome, ServerStatus } from './server-health.ts';

/** Why an instance is not simply ready. */
export interface ReadinessReason {
  readonly reason: 'draining' | 'store_degraded' | 'store_unavailable' | 'server_down';
  /** What it means. */
  readonly detail: string;
}

/** Whether an instance is ready, and why not. */
export interface ReadinessReport {
  readonly status: Readiness;
  /** Empty when all is well. */
  readonly reasons: readonly ReadinessReason[];
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
      'The shared store has not answered for a whole lease. This instance opens no sessions until the store answers.',
  },
  serverDown: {
    reason: 'server_down',
    detail: 'A server with --probe-required does not answer its probes.',
  },
} as const satisfies Record<string, ReadinessReason>;

/**
 * Whether an instance is ready. A server that fails makes it unready only where the operator wants it: the other instances
 * most likely meet the same failure, so that a balancer would be left with nobody, and other servers of the instance have
 * nothing to do with it. And only if its probes say so: the crash that one client met is no measure for all.
 */
export function readinessReport(readiness: Readiness, servers: readonly ServerStatus[]): ReadinessReport {
  const ofInstance = readiness === 'ready' ? [] : [reasons[readiness]];
  if (!servers.some(({ isRequired, probe }) => isRequired && probe === 'down'))
    return { status: readiness, reasons: ofInstance };
  return {
    status: readiness === 'draining' ? readiness : 'unavailable',
    reasons: [...ofInstance, reasons.serverDown],
  };
}

/** A server as `/readyz` tells of it: null for what is not known. */
export function serverReadiness({ server, transport, era, last, probe }: ServerStatus): object {
  return {
    name: server,
    transport,
    era: era ?? null,
    last: last === undefined ? null : shownOutcome(last),
    probe: probe ?? null,
  };
}

function shownOutcome(outcome: ServerOutcome): object {
  const at = outcome.at.toISOString();
  if (outcome.state === 'started') return { outcome: 'started', at };
  const { reason, why, help = null } = outcome;
  return { outcome: 'failed', reason, why, help, at };
}
