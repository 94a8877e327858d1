/** The result of a lease renewal. */
export interface LeaseRenewal {
  /** False if the lease had lapsed or the instance was declared dead. The instance must then join under a new name. */
  readonly held: boolean;
  /**
   * The age of the store's data in milliseconds: the time since the store was last empty. The loss of the data alone
   * may be why an older session is unknown. In a Redis cluster, a single master determines this age.
   */
  readonly dataAgeMs: number;
  /** Names this generation of the store's data. A changed value means that the store lost its data. */
  readonly storeGeneration: string;
  /** The end of the lease by the store's clock in milliseconds, if it is held. */
  readonly leaseEndsMs: number;
}

/**
 * The running gateways that share a store: their leases (docs/design.md, D3) and their addresses (D4).
 *
 * An instance is a name that is used once. A name whose lease has lapsed never becomes alive again, so "this owner is
 * lost" stays true. A rejection with `StoreUnavailable` is an unknown outcome; every method may be called again.
 */
export interface Instances {
  /**
   * Registers a new name with a lease, and returns what a renewal would return. The lease is not
   * held if the name was declared dead.
   */
  join(instance: string): Promise<LeaseRenewal>;
  /**
   * Renews a lease for its whole duration, counted from when the store handles the call. The caller counts from when it
   * sent the call. Renewal also works while the store refuses writes because its memory is full.
   */
  renew(instance: string): Promise<LeaseRenewal>;
  /** Gives up the name and its lease. */
  leave(instance: string): Promise<void>;
  /** Tells for each of these instances, in the same order, whether it holds its lease. */
  areAlive(instances: readonly string[]): Promise<boolean[]>;
  /**
   * Publishes the address at which other instances reach this one. All addresses are kept for some minutes, so each is
   * published again while its instance runs.
   */
  publishAddress(instance: string, address: string): Promise<void>;
  /** Returns the published address of an instance; undefined if there is none. */
  addressOf(instance: string): Promise<string | undefined>;
  /** Returns the addresses of all instances that hold a lease, by name. */
  addresses(): Promise<ReadonlyMap<string, string>>;
  /** Ensures that an instance without a lease never gets one again. Returns false if the instance holds its lease. */
  declareDead(instance: string): Promise<boolean>;
}
