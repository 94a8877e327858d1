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
