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
