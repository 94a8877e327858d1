import { ownBytes } from '../../util/detached-bytes.ts';
import type { Owners } from '../shared/owners.ts';

/** More are not remembered (P8): those that were said first are forgotten. */
export const maxOwners = 50_000;

/** Owners that live as long as the process at most. */
export interface MemoryOwners extends Owners {
  /** Forgets what has had its time. */
  sweep(): void;
  clear(): void;
}

/** Makes an empty table. */
export function createMemoryOwners(now: () => number): MemoryOwners {
  const owners = new Map<string, { readonly owner: Buffer; readonly until: number }>();
  return {
    async set(thing, owner, forMs) {
      owners.delete(thing);
      owners.set(thing, { owner: ownBytes(owner), until: now() + forMs });
      const [oldest] = owners.keys();
      if (owners.size > maxOwners && oldest !== undefined) owners.delete(oldest);
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
