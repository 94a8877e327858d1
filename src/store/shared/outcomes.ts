/**
 * The outcomes of rounds of input (2026-07-28, basic/patterns/mrtr). A client that missed the answer to a round may
 * repeat the round at any instance and must not get another answer.
 */
export interface RoundOutcomeStore {
  /**
   * Keeps the first outcome that is reported for a round of a call. All outcomes of the call are kept for `ttlMs`
   * milliseconds from now. A rejection with `StoreUnavailable` is an unknown outcome; the method may be called again.
   * @param call an id that no other call of any instance has
   */
  keep(call: string, round: number, outcome: Buffer, ttlMs: number): Promise<void>;
  /** Returns the outcome of a round; undefined if it is not kept or no longer kept. Rejects with `StoreUnavailable`. */
  find(call: string, round: number): Promise<Buffer | undefined>;
}
