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

/** A message from one instance to another. */
export interface MailboxMessage {
  readonly from: string;
  /** Counts the messages from this sender to this mailbox, from 1. A repeat has the same number; a hole is a loss. */
  readonly number: number;
  readonly content: Buffer;
}

/** The messages of one delivery from a mailbox. */
export interface MailboxBatch {
  readonly messages: readonly MailboxMessage[];
  /** Identifies the delivery to `acknowledge`, once all of its messages were acted on. */
  readonly ackToken: string;
}

/** The messages in a mailbox that nobody has received yet. */
export interface MailboxBacklog {
  readonly bytes: number;
  /** How long the oldest message has been waiting; 0 if there is none. */
  readonly oldestMs: number;
}

/**
 * The running gateways that share a store: their leases (docs/design.md, D3) and their mailboxes (D4).
 *
 * An instance is a name that is used once. A name whose lease has lapsed never becomes alive again, so "this owner is
 * lost" stays true. A rejection with `StoreUnavailable` is an unknown outcome; every method may be called again.
 */
export interface Instances {
  /**
   * Registers a new name, with a lease and an empty mailbox, and returns what a renewal would return. The lease is not
   * held if the name was declared dead.
   */
  join(instance: string): Promise<LeaseRenewal>;
  /**
   * Renews a lease for its whole duration, counted from when the store handles the call. The caller counts from when it
   * sent the call. Renewal also works while the store refuses writes because its memory is full.
   */
  renew(instance: string): Promise<LeaseRenewal>;
  /**
   * Gives up the name and its lease: the mailbox takes no more messages. Messages that it holds can still be received
   * until the mailbox expires.
   */
  leave(instance: string): Promise<void>;
  /** Tells for each of these instances, in the same order, whether it holds its lease. */
  areAlive(instances: readonly string[]): Promise<boolean[]>;
  /**
   * Publishes the address at which other instances can reach this one directly. The address is kept for some minutes,
   * so it is published again while the instance runs.
   */
  publishAddress(instance: string, address: string): Promise<void>;
  /** Returns the published address of an instance; undefined if there is none. */
  addressOf(instance: string): Promise<string | undefined>;
  /**
   * Ensures that an instance without a lease never gets one again. A shared store removes the messages that the instance
   * has received, because they can contain credentials. Returns false if the instance holds its lease.
   */
  declareDead(instance: string): Promise<boolean>;

  /**
   * Puts messages into a mailbox, all or none, in order, numbered from `first` on. A repeated call with the same
   * numbers stores the messages twice; the receiver drops repeats.
   *
   * - `full`: the messages do not fit beside the unread ones. An empty mailbox takes anything.
   * - `gone`: the receiver is not alive, and nothing was stored.
   */
  enqueue(to: string, from: string, first: number, contents: readonly Buffer[]): Promise<'posted' | 'full' | 'gone'>;
  /**
   * Waits at most `waitMs` for messages and returns those after the last delivery from this mailbox; undefined if none
   * came. After an outage of the store, messages that were not acknowledged are delivered again. The promise always
   * settles, a little after `waitMs` at the latest, even if a connection fails. Each mailbox takes one call at a time.
   */
  receive(instance: string, waitMs: number): Promise<MailboxBatch | undefined>;
  /**
   * Withdraws a sender's undelivered messages from the mailbox of an instance without a lease, so that they are never
   * delivered. Returns the numbers of those messages. A message that was posted twice may have been delivered once all
   * the same. So may a message that was posted before a failover of the store.
   */
  withdraw(to: string, from: string): Promise<readonly number[]>;
  /** Frees the space that a delivery and all deliveries before it take in the mailbox. */
  acknowledge(instance: string, ackToken: string): Promise<void>;
  /** Returns the size and age of the messages that this store has not delivered from a mailbox. */
  backlog(instance: string): Promise<MailboxBacklog>;
}
