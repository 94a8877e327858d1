/**
 * What rounds of input came to (2026-07-28, basic/patterns/mrtr), for a client that sends one again to any instance: it did not
 * hear the answer, and must not get another one.
 */
export interface RoundOutcomeStore {
  /**
   * Keeps what a round of a call came to, the first that is said of it; and all that is kept of the call for so many
   * milliseconds from now. A rejection with `StoreUnavailable` is an unknown outcome; may be called again.
   * @param call an id that no other call of any instance has
   */
  keep(call: string, round: number, outcome: Buffer, forMs: number): Promise<void>;
  /** What a round came to; undefined if that is not kept, or not any more. Rejects with `StoreUnavailable`. */
  find(call: string, round: number): Promise<Buffer | undefined>;
}
