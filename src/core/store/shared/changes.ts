// src/core/store/shared: the small data that all instances share: changes, outcomes, task owners, rates, secrets.

/** Receives the changes that are announced under a topic. */
export interface ChangeListener {
  onChange(text: Buffer): void;
  /** Changes may have been announced that this listener did not receive and never will. */
  onMissed(): void;
}

/** A longer text is not delivered: the topic's listeners get `onMissed` instead (P8). */
export const maxChangeBytes = 65_536;

/** Announcements to all instances that subscribe to a topic: short texts, whose sender does not know the receivers. */
export interface Changes {
  /**
   * Announces a change to all instances that subscribe to the topic, including this one. Each subscriber receives the
   * changes of one instance once and in order. A rejection with `StoreUnavailable` is an unknown outcome; a repeated
   * call may announce the change twice.
   */
  publish(topic: string, text: Buffer): Promise<void>;
  /**
   * Delivers the changes that are announced after the promise resolves, until the returned function is called. During
   * an outage of the store nothing is delivered. Afterwards the listener receives the kept changes, or `onMissed`.
   * Rejects with `StoreUnavailable`.
   */
  subscribe(topic: string, listener: ChangeListener): Promise<() => void>;
}
