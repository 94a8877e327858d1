import { contain } from '../../util/boundary.ts';
import { type ChangeListener, maxChangeBytes } from './shared-data.ts';

/** The listeners in this process, by topic. */
export class ChangeSubscribers {
  readonly #byTopic = new Map<string, Set<ChangeListener>>();

  get isEmpty(): boolean {
    return this.#byTopic.size === 0;
  }

  /** Adds a listener and returns the function that removes it. */
  add(topic: string, listener: ChangeListener): () => void {
    const listeners = this.#byTopic.get(topic) ?? new Set();
    this.#byTopic.set(topic, listeners);
    // The same listener may be added several times, so each call makes its own entry.
    const entry: ChangeListener = {
      onChange: (text) => listener.onChange(text),
      onMissed: () => listener.onMissed(),
    };
    listeners.add(entry);
    return () => {
      listeners.delete(entry);
      if (listeners.size === 0 && this.#byTopic.get(topic) === listeners) this.#byTopic.delete(topic);
    };
  }

  /**
   * Delivers a change to the topic's listeners. A listener that throws gets `onMissed`; the others get the change
   * anyway.
   */
  notify(topic: string, text: Buffer): void {
    for (const listener of [...(this.#byTopic.get(topic) ?? [])]) {
      const { onMissed, onChange } = listener;
      if (text.length > maxChangeBytes) contain('store', onMissed);
      else contain('store', () => onChange(text), onMissed);
    }
  }

  /** Calls `onMissed` of all listeners. */
  notifyMissed(): void {
    for (const listeners of [...this.#byTopic.values()]) {
      for (const { onMissed } of [...listeners]) contain('store', onMissed);
    }
  }
}
