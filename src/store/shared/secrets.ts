/**
 * Secrets that all instances share. The instance that needs a secret first makes it. The store keeps a secret for at
 * least a month after its last use, unless it loses its data.
 */
export interface Secrets {
  /**
   * Returns the secret under a name. If there is none, the candidate becomes the secret. A rejection with
   * `StoreUnavailable` is an unknown outcome; the method may be called again.
   */
  keep(name: string, candidate: Buffer): Promise<Buffer>;
}
