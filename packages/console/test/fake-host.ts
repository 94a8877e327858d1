import type { ChangeListener, Changes, ConsoleHost } from '../src/host.ts';

/** What gateways do for the console, as simple as possible: `hunter2` and keys of GitHub are the only credentials. */
export const fakeHost: ConsoleHost = {
  contain(work, onFault) {
    try {
      work();
    } catch {
      onFault?.();
    }
  },
  redact: (text) => text.replaceAll(/hunter2|ghp_\w+/g, '•••'),
  refusesSender: (reason) => reason !== 'not_json' && reason !== 'unknown_session',
  labelOf: ({ name }) => (name !== undefined && /[A-Z\d]/.test(name) ? 'other' : name),
  isMeasured: (method) => method !== 'initialize' && method !== 'subscriptions/listen',
};

/** Announcements between instances of one process. */
export function createChanges(): Changes {
  const listeners = new Map<string, Set<ChangeListener>>();
  return {
    async publish(topic, text) {
      await Promise.resolve();
      for (const { onChange } of listeners.get(topic) ?? []) onChange(text);
    },
    subscribe(topic, listener) {
      const own = listeners.get(topic) ?? new Set();
      listeners.set(topic, own.add(listener));
      return Promise.resolve(() => void own.delete(listener));
    },
  };
}
