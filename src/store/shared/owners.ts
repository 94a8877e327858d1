/** Whose things are that one server makes and all instances reach, where only their ids tell them apart: tasks. */
export interface TaskOwnerStore {
  /**
   * Says whose a thing is, in place of what was said before, for so many milliseconds. A rejection with `StoreUnavailable` is an
   * unknown outcome; may be called again.
   */
  set(thing: string, owner: Buffer, forMs: number): Promise<void>;
  /** Whose it is; undefined if that is not known, or not any more. Rejects with `StoreUnavailable`. */
  find(thing: string): Promise<Buffer | undefined>;
}
