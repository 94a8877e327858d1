import { type ChangeListener, maxChangeBytes } from './changes.ts';

/** Who follows which topic, in this process. */
export class Followers {
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

  tell(topic: string, text: Buffer): void {
    for (const listener of [...(this.#byTopic.get(topic) ?? [])]) {
      if (text.length > maxChangeBytes) listener.onMissed();
      else listener.onChange(text);
    }
  }

  /** All of them have missed something. */
  tellMissed(): void {
    for (const listeners of [...this.#byTopic.values()]) for (const listener of [...listeners]) listener.onMissed();
  }

  clear(): void {
    this.#byTopic.clear();
  }
}
