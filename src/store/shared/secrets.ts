/**
 * Secrets that the instances share: made by whichever needs one first, and the same for all. They are kept as long as the
 * store keeps its data, and at least for a month after they were asked for last.
 */
export interface Secrets {
  /**
   * The secret that is kept under a name. Where there is none, the candidate is kept from now on. A rejection with
   * `StoreUnavailable` is an unknown outcome; may be called again.
   */
  keep(name: string, candidate: Buffer): Promise<Buffer>;
}
