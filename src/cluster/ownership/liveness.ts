import type { Instances } from '../../store/instances.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';

/**
 * True if an instance holds its lease. While the store is away, the check is repeated for as long as a lease lasts.
 * After that the instance counts as dead.
 */
export async function isAlive(instances: Instances, instance: string, leaseMs: number): Promise<boolean> {
  const check = () => instances.areAlive([instance]);
  const [holdsLease] = await retryWhileUnavailable(check, AbortSignal.timeout(leaseMs)).catch(() => []);
  return holdsLease === true;
}
