import type { Changes } from '../../store/shared/changes.ts';

/** Options of `SharedTopic`. */
export interface SharedTopicOptions {
  /** The change announcements between instances; undefined for a single instance. */
  readonly changes: Changes | undefined;
  readonly topic: string;
  onMessage(text: Buffer): void;
  /** Receives failures of the store. */
  onFailed(cause: unknown): void;
}

/** Messages between all instances on one topic. A message that is missed is not asked for again. */
export class SharedTopic {
  readonly #options: SharedTopicOptions;
  #stop: Promise<(() => void) | undefined> | undefined;

  constructor(options: SharedTopicOptions) {
    this.#options = options;
    this.follow();
  }

  /** Subscribes, unless a subscription exists or is under way. After a failure, the next call tries again. */
  follow(): void {
    if (this.#stop !== undefined) return;
    const { changes, topic, onMessage, onFailed } = this.#options;
    const listener = { onChange: onMessage, onMissed: () => undefined };
    this.#stop = changes?.subscribe(topic, listener).catch((cause: unknown) => {
      onFailed(cause);
      this.#stop = undefined;
      return undefined;
    });
  }

  publish(text: Buffer): void {
    const { changes, topic, onFailed } = this.#options;
    changes?.publish(topic, text).catch(onFailed);
  }

  async close(): Promise<void> {
    (await this.#stop)?.();
  }
}
