/**
 * The owners of tasks of servers that all instances reach. Only its id names such a task, so the store remembers to
 * whom it belongs.
 */
export interface TaskOwnerStore {
  /**
   * Sets the owner of a task for `ttlMs` milliseconds and replaces an earlier owner. A rejection with
   * `StoreUnavailable` is an unknown outcome; the method may be called again.
   */
  set(task: string, owner: Buffer, ttlMs: number): Promise<void>;
  /** Returns the owner of a task; undefined if it is not known or no longer known. Rejects with `StoreUnavailable`. */
  find(task: string): Promise<Buffer | undefined>;
}
