import { detachBytes } from '../../util/detached-bytes.ts';
import type { Secrets } from '../shared/secrets.ts';

/** Secrets that live as long as the process. */
export interface MemorySecrets extends Secrets {
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
    clear: () => secrets.clear(),
  };
}
