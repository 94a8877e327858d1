import { createMemoryStore, type MemoryLimits } from '../../../src/core/store/memory/memory-store.ts';
import type { ClusterStore } from '../../../src/core/store/store.ts';
import { createMemoryInstances } from './memory-instances.ts';

/** The limits of a memory store, and the times and limits of instances. */
export interface MemoryClusterLimits extends MemoryLimits {
  /** The duration of a lease after a renewal; 6 s by default. */
  readonly leaseMs?: number;
}

/**
 * Makes a store in memory that several gateways of this process can share, for tests. In production only Redis is
 * shared. Every call has taken effect before it returns its promise.
 * @param now milliseconds of a clock that never jumps
 */
export function createMemoryClusterStore(
  { leaseMs = 6_000, ...limits }: MemoryClusterLimits,
  now: () => number = () => performance.now(),
): ClusterStore {
  const store = createMemoryStore(limits, now);
  return { ...store, instances: createMemoryInstances({ leaseMs, now }) };
}
