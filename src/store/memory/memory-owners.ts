import { BoundedMap } from '../../util/bounded-map.ts';
import { detachBytes } from '../../util/detached-bytes.ts';
import type { TaskOwnerStore } from '../shared/owners.ts';

/** How many owners are remembered (P8). Beyond this number, the owner that was set least recently is dropped. */
export const maxTaskOwners = 50_000;

/** Task owners that live at most as long as the process. */
export interface MemoryTaskOwners extends TaskOwnerStore {
  /** Removes expired owners. */
  sweep(): void;
  /** The arguments of `set` that make the same table again, in order. */
  known(): Iterable<Parameters<TaskOwnerStore['set']>>;
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
    *known() {
      for (const [task, { owner, until }] of owners) yield [task, owner, until - now()];
    },
    clear: () => owners.clear(),
  };
}
