import type { Changes } from '../host.ts';

/** Options of `SharedTopic`. */
export interface SharedTopicOptions {
  /** The change announcements between instances; undefined for a single instance. */
  readonly changes: Changes | undefined;
  readonly topic: string;
  onMessage(text: Buffer): void;
  /** Receives failures of the store. */
  onFailed(cause: unknown): void;
}

/** The pause before a failed subscription is tried again. */
const retryMs = 3_000;

/** Messages between all instances on one topic. A message that is missed is not asked for again. */
export class SharedTopic {
  readonly #options: SharedTopicOptions;
  #stop: Promise<(() => void) | undefined> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: SharedTopicOptions) {
    this.#options = options;
    this.follow();
  }

  /**
   * Subscribes, unless a subscription exists or is under way. After a failure it tries again by itself: an instance
   * whose page nobody opens must answer too.
   */
  follow(): void {
    if (this.#stop !== undefined || this.#isClosed) return;
    clearTimeout(this.#retry);
    const { changes, topic, onMessage, onFailed } = this.#options;
    const listener = { onChange: onMessage, onMissed: () => undefined };
    this.#stop = changes?.subscribe(topic, listener).catch((cause: unknown) => {
      onFailed(cause);
      this.#stop = undefined;
      if (!this.#isClosed) this.#retry = setTimeout(() => this.follow(), retryMs).unref();
      return undefined;
    });
  }

  publish(text: Buffer): void {
    const { changes, topic, onFailed } = this.#options;
    changes?.publish(topic, text).catch(onFailed);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    (await this.#stop)?.();
  }
}
