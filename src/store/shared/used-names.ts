/** Names that may be used only once, by whichever instance comes first. */
export interface UsedNames {
  /**
   * Notes the use of a name for `ttlMs` milliseconds. A rejection with `StoreUnavailable` is an unknown outcome.
   * @returns true if the name was not in use
   */
  use(name: string, ttlMs: number): Promise<boolean>;
}
