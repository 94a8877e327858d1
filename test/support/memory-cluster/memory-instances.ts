import { randomUUID } from 'node:crypto';
import type { Instances, LeaseRenewal } from '../../../src/core/store/instances.ts';

/** The duration of a lease, and the clock. */
export interface MemoryInstancesOptions {
  readonly leaseMs: number;
  readonly now: () => number;
}

interface Instance {
  address?: string;
  leaseEndsMs: number;
}

/** The leases and addresses of the gateways in this process. Only `join` gives a name a lease: no renewal revives one. */
export function createMemoryInstances({ leaseMs, now }: MemoryInstancesOptions): Instances {
  const instances = new Map<string, Instance>();
  const dead = new Set<string>();
  const storeGeneration = randomUUID();
  const createdMs = now();

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
      dead.add(name);
      return true;
    },

    async addresses() {
      const living = [...instances].filter(([name]) => findAlive(name) !== undefined);
      return new Map(living.flatMap(([name, { address }]) => (address === undefined ? [] : [[name, address]])));
    },
  };
}
