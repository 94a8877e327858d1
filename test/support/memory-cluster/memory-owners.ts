import type { TaskOwnerStore } from '../../../src/store/shared/owners.ts';
import { BoundedMap } from '../../../src/util/bounded-map.ts';
import { detachBytes } from '../../../src/util/detached-bytes.ts';

/** How many owners are remembered (P8). Beyond this number, the owner that was set least recently is dropped. */
export const maxTaskOwners = 50_000;

/** Task owners that live at most as long as the process. */
export interface MemoryTaskOwners extends TaskOwnerStore {
  /** Removes expired owners. */
  sweep(): void;
  clear(): void;
}

/** Makes an empty table. */
export function createMemoryTaskOwners(now: () => number): MemoryTaskOwners {
  const owners = new BoundedMap<string, { readonly owner: Buffer; readonly until: number }>(maxTaskOwners);
  return {
    async set(task, owner, ttlMs) {
      owners.set(task, { owner: detachBytes(owner), until: now() + ttlMs });
    },
    async find(task) {
      const found = owners.get(task);
      return found !== undefined && found.until > now() ? found.owner : undefined;
    },
    sweep() {
      for (const [task, { until }] of owners) if (until <= now()) owners.delete(task);
    },
    clear: () => owners.clear(),
  };
}
