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

/** What a value is for. Each kind has its own names, and its own limits in a store in memory (P8). */
export type ValueKind =
  /** A key of the gateway that all instances share. */
  | 'secret'
  /** How a round of input has ended (2026-07-28, basic/patterns/mrtr). */
  | 'outcome'
  /** The user who began a task, or the instance where the clients of an affinity have their process. */
  | 'owner'
  /** The mark of a name that may be used only once. */
  | 'used'
  /** A task that the gateway has made of a call: its state, its end, or an answer to one of its questions. */
  | 'task'
  /** The whole text of a tool's result that was cut. */
  | 'result'
  /** The definitions of the tools of a server. */
  | 'definition';

/**
 * Small values that all instances share, each for its own time. A rejection with `StoreUnavailable` is an unknown
 * outcome; the same call may be made again.
 */
export interface Values {
  /** Returns the value under a name; undefined if there is none, or not any more. */
  get(kind: ValueKind, name: string): Promise<Buffer | undefined>;
  /** Sets a value for `ttlMs` milliseconds, and replaces an earlier one. */
  set(kind: ValueKind, name: string, value: Buffer, ttlMs: number): Promise<void>;
  /**
   * Returns the value under a name. If there is none, the candidate becomes the value. In both cases the value is kept
   * for `ttlMs` milliseconds from now.
   */
  keep(kind: ValueKind, name: string, candidate: Buffer, ttlMs: number): Promise<Buffer>;
}

/**
 * The use of rates, counted by all instances together. The use of a rate is a debt in milliseconds: each use adds to
 * the debt, and each second pays off one second.
 */
export interface Rates {
  /**
   * Adds a cost in milliseconds to the debt under a name. A rejection with `StoreUnavailable` is an unknown outcome.
   * @returns the whole debt in milliseconds
   */
  use(name: string, costMs: number): Promise<number>;
}

/** How many items may be reserved under one name, and how much they may take together. */
export interface ReservationLimits {
  readonly items: number;
  readonly amount: number;
}

/**
 * What the items of a user take of something limited, counted by all instances together. Each item has its own lifetime,
 * so that nothing of a lost instance counts for ever.
 */
export interface Reservations {
  /**
   * Reserves an amount for an item, in place of what it had, for `ttlMs` milliseconds from now. A rejection with
   * `StoreUnavailable` is an unknown outcome; the same call may be made again.
   * @returns false if the limits do not allow it. Then nothing has changed. An item may always get less than it has
   */
  reserve(name: string, item: string, amount: number, ttlMs: number, limits: ReservationLimits): Promise<boolean>;
}
