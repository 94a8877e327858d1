/** How many items may be reserved under one name, and how much they may take together. */
export interface ReservationLimits {
  readonly items: number;
  readonly amount: number;
}

/**
 * What the items of a user take of something limited, counted by all instances together. Each item has its own lifetime,
 * so that nothing of a lost instance counts for ever.
 */
export interface Reservations {
  /**
   * Reserves an amount for an item, in place of what it had, for `ttlMs` milliseconds from now. A rejection with
   * `StoreUnavailable` is an unknown outcome; the same call may be made again.
   * @returns false if the limits do not allow it. Then nothing has changed. An item may always get less than it has
   */
  reserve(name: string, item: string, amount: number, ttlMs: number, limits: ReservationLimits): Promise<boolean>;
}
