import type { SessionCluster } from './session-cluster.ts';

/**
 * Whether new sessions are welcome. `degraded`: the shared store does not answer, but may at any moment. `unavailable`:
 * it has not answered for a whole lease beyond the one that was held.
 */
export type Readiness = 'ready' | 'degraded' | 'unavailable' | 'draining';

/** The readiness of an instance with this lease. An instance that shares no store has none. */
export function readinessOf(
  lease: SessionCluster['lease'] | undefined,
  leaseMs: number,
): Exclude<Readiness, 'draining'> {
  if (lease === undefined || lease.isHeld) return 'ready';
  return lease.unconfirmedMs < 2 * leaseMs ? 'degraded' : 'unavailable';
}
