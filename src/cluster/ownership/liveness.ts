import type { Instances } from '../../store/instances.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';

/**
 * True if an instance holds its lease. A store that is away is asked again, for so long as a lease lasts: what cannot be
 * asked is not dead yet.
 */
export async function isAlive(instances: Instances, instance: string, leaseMs: number): Promise<boolean> {
  const ask = () => instances.areAlive([instance]);
  const [holdsLease] = await retryWhileUnavailable(ask, AbortSignal.timeout(leaseMs)).catch(() => []);
  return holdsLease === true;
}
