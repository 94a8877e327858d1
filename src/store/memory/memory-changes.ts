import type { Changes } from '../shared/changes.ts';
import { ChangeSubscribers } from '../shared/followers.ts';

/** Changes that are announced within this process, before `publish` returns. */
export interface MemoryChanges extends Changes {
  clear(): void;
}

/** Makes changes without subscribers. */
export function createMemoryChanges(): MemoryChanges {
  const subscribers = new ChangeSubscribers();
  return {
    async publish(topic, text) {
      subscribers.notify(topic, text);
    },
    async subscribe(topic, listener) {
      return subscribers.add(topic, listener);
    },
    clear: () => subscribers.clear(),
  };
}
