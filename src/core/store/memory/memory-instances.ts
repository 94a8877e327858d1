import { randomUUID } from 'node:crypto';
import { BoundedMap } from '../../util/bounded-map.ts';
import type { Instances, LeaseRenewal } from '../instances.ts';

/** The leases and addresses of the gateways in this process. */
export interface MemoryInstances extends Instances {
  /** Removes instances that were lost long ago. */
  sweep(): void;
}

/** The times and limits of instances. */
export interface MemoryInstancesOptions {
  readonly leaseMs: number;
  readonly now: () => number;
  /** When the store was last empty; now by default. A store that cannot lose data alone gives 0. */
  readonly createdMs?: number;
}

interface Instance {
  address?: string;
  leaseEndsMs: number;
}

/** How many names are remembered as dead. A name is used once, so an older one matters only to a very late `join`. */
const maxDead = 10_000;

/** For how long a lost instance is remembered. */
const retentionMs = 120_000;

/** Makes an empty table. Only `join` gives a name a lease: a renewal never revives a lapsed lease. */
export function createMemoryInstances(options: MemoryInstancesOptions): MemoryInstances {
  const { leaseMs, now } = options;
  const instances = new Map<string, Instance>();
  const dead = new BoundedMap<string, true>(maxDead);
  const storeGeneration = randomUUID();
  const { createdMs = now() } = options;

  /** Finds an instance that holds its lease. */
  const findAlive = (name: string): Instance | undefined => {
    const instance = instances.get(name);
    return instance !== undefined && instance.leaseEndsMs > now() ? instance : undefined;
  };

  const renewLease = (name: string): LeaseRenewal => {
    const instance = findAlive(name);
    if (instance !== undefined) instance.leaseEndsMs = now() + leaseMs;
    return {
      held: instance !== undefined,
      dataAgeMs: now() - createdMs,
      storeGeneration,
      leaseEndsMs: now() + leaseMs,
    };
  };

  return {
    async join(name) {
      if (findAlive(name) === undefined && !dead.has(name)) {
        instances.set(name, { leaseEndsMs: now() + leaseMs });
      }
      return renewLease(name);
    },
    async renew(name) {
      return renewLease(name);
    },
    async leave(name) {
      const instance = findAlive(name);
      if (instance !== undefined) instance.leaseEndsMs = now();
    },
    async areAlive(names) {
      return names.map((name) => findAlive(name) !== undefined);
    },
    async publishAddress(name, address) {
      const instance = findAlive(name);
      if (instance !== undefined) instance.address = address;
    },
    async addressOf(name) {
      return findAlive(name)?.address;
    },
    async declareDead(name) {
      if (findAlive(name) !== undefined) return false;
      dead.set(name, true);
      return true;
    },

    async addresses() {
      const living = [...instances].filter(([name]) => findAlive(name) !== undefined);
      return new Map(living.flatMap(([name, { address }]) => (address === undefined ? [] : [[name, address]])));
    },

    sweep() {
      for (const [name, { leaseEndsMs }] of instances) if (leaseEndsMs + retentionMs <= now()) instances.delete(name);
    },
  };
}
