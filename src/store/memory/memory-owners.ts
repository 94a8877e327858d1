import { detachBytes } from '../../util/detached-bytes.ts';
import type { TaskOwnerStore } from '../shared/owners.ts';

/** More are not remembered (P8): those that were said first are forgotten. */
export const maxTaskOwners = 50_000;

/** Owners that live as long as the process at most. */
export interface MemoryTaskOwners extends TaskOwnerStore {
  /** Forgets what has had its time. */
  sweep(): void;
  clear(): void;
}

/** Makes an empty table. */
export function createMemoryTaskOwners(now: () => number): MemoryTaskOwners {
  const owners = new Map<string, { readonly owner: Buffer; readonly until: number }>();
  return {
    async set(thing, owner, forMs) {
      owners.delete(thing);
      owners.set(thing, { owner: detachBytes(owner), until: now() + forMs });
      const [oldest] = owners.keys();
      if (owners.size > maxTaskOwners && oldest !== undefined) owners.delete(oldest);
    },
    async find(thing) {
      const found = owners.get(thing);
      return found !== undefined && found.until > now() ? found.owner : undefined;
    },
    sweep() {
      for (const [thing, { until }] of owners) if (until <= now()) owners.delete(thing);
    },
    clear: () => owners.clear(),
  };
}
