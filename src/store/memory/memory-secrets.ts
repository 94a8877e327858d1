import { detachBytes } from '../../util/detached-bytes.ts';
import type { Secrets } from '../shared/secrets.ts';

/** Secrets that live as long as the process. */
export interface MemorySecrets extends Secrets {
  has(name: string): boolean;
  entries(): Iterable<readonly [string, Buffer]>;
  clear(): void;
}

/** Makes an empty table. It needs no limit, since only the gateway itself makes names, and few of them. */
export function createMemorySecrets(): MemorySecrets {
  const secrets = new Map<string, Buffer>();
  return {
    async keep(name, candidate) {
      const kept = secrets.get(name) ?? detachBytes(candidate);
      secrets.set(name, kept);
      return kept;
    },
    has: (name) => secrets.has(name),
    entries: () => secrets.entries(),
    clear: () => secrets.clear(),
  };
}
