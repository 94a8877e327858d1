/** Hears what is announced under a topic. */
export interface ChangeListener {
  onChange(text: Buffer): void;
  /** Something may have been announced that was not heard, and will not be. */
  onMissed(): void;
}

/** A longer text is not passed on; who follows its topic has missed something then (P8). */
export const maxChangeBytes = 65_536;

/** What instances tell each other without knowing who wants to hear it: short texts under topics. */
export interface Changes {
  /**
   * Tells all instances that follow the topic, this one too. Each hears what one instance announces in its order, once. A
   * rejection with `StoreUnavailable` is an unknown outcome; asking again may tell it twice.
   */
  publish(topic: string, text: Buffer): Promise<void>;
  /**
   * Hears what is announced from when this resolves, until the function that it gives is called. While the store is away
   * nothing is heard, and later what was kept, or that something was missed. Rejects with `StoreUnavailable`.
   */
  subscribe(topic: string, listener: ChangeListener): Promise<() => void>;
}
