import type { Changes } from '../shared/changes.ts';
import { ChangeSubscribers } from '../shared/followers.ts';

/** Changes that are told within this process, before `announce` returns. */
export interface MemoryChanges extends Changes {
  clear(): void;
}

/** Nobody follows at first. */
export function createMemoryChanges(): MemoryChanges {
  const followers = new ChangeSubscribers();
  return {
    async publish(topic, text) {
      followers.notify(topic, text);
    },
    async subscribe(topic, listener) {
      return followers.add(topic, listener);
    },
    clear: () => followers.clear(),
  };
}
