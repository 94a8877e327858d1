import { contain } from '../../util/boundary.ts';
import { type ChangeListener, maxChangeBytes } from './changes.ts';

/** Who follows which topic, in this process. */
export class ChangeSubscribers {
  readonly #byTopic = new Map<string, Set<ChangeListener>>();

  get isEmpty(): boolean {
    return this.#byTopic.size === 0;
  }

  /** Returns what to call when the listener is to hear no more. */
  add(topic: string, listener: ChangeListener): () => void {
    const listeners = this.#byTopic.get(topic) ?? new Set();
    this.#byTopic.set(topic, listeners);
    // An entry of its own for each call.
    const own: ChangeListener = {
      onChange: (text) => listener.onChange(text),
      onMissed: () => listener.onMissed(),
    };
    listeners.add(own);
    return () => {
      listeners.delete(own);
      if (listeners.size === 0 && this.#byTopic.get(topic) === listeners) this.#byTopic.delete(topic);
    };
  }

  /** A listener that fails at a change is told that it has missed one. The others hear the change all the same. */
  notify(topic: string, text: Buffer): void {
    for (const listener of [...(this.#byTopic.get(topic) ?? [])]) {
      const { onMissed, onChange } = listener;
      if (text.length > maxChangeBytes) contain('store', onMissed);
      else contain('store', () => onChange(text), onMissed);
    }
  }

  /** All of them have missed something. */
  notifyMissed(): void {
    for (const listeners of [...this.#byTopic.values()]) {
      for (const { onMissed } of [...listeners]) contain('store', onMissed);
    }
  }

  clear(): void {
    this.#byTopic.clear();
  }
}
