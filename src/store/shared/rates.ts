/**
 * How much of their rates others have used, as all instances count it together. A rate is a debt that is paid off as time
 * passes: a second of it each second. What is used costs so many milliseconds, and adds to the debt.
 */
export interface Rates {
  /**
   * Adds what was used under a name, in milliseconds of its rate. A rejection with `StoreUnavailable` is an unknown outcome.
   * @returns the whole debt, in milliseconds
   */
  use(name: string, costMs: number): Promise<number>;
}
