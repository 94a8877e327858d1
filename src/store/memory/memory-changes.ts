import type { Changes } from '../shared/changes.ts';
import { Followers } from '../shared/followers.ts';

/** Changes that are told within this process, before `announce` returns. */
export interface MemoryChanges extends Changes {
  clear(): void;
}

/** Nobody follows at first. */
export function createMemoryChanges(): MemoryChanges {
  const followers = new Followers();
  return {
    async announce(topic, text) {
      followers.tell(topic, text);
    },
    async follow(topic, listener) {
      return followers.add(topic, listener);
    },
    clear: () => followers.clear(),
  };
}
