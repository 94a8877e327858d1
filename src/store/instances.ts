/** What a renewal said. */
export interface LeaseRenewal {
  /** False if the lease had lapsed or the instance was declared dead: it must join anew under another name. */
  readonly held: boolean;
  /**
   * How long ago the store was empty for the last time, in milliseconds: a session older than that may be unknown for no
   * other reason. Of a cluster it is told by one of its masters alone.
   */
  readonly dataAgeMs: number;
  /** Names this life of the store's data; another value than before says that it was lost. */
  readonly storeGeneration: string;
}

/** A message from one instance to another. */
export interface MailboxMessage {
  readonly from: string;
  /** Counts the letters from this sender to this mailbox, from 1. A repeat has its number again; a hole is a loss. */
  readonly number: number;
  readonly content: Buffer;
}

/** What was in a mailbox. */
export interface MailboxBatch {
  readonly messages: readonly MailboxMessage[];
  /** For `discard`, once all of these letters were acted on. */
  readonly ackToken: string;
}

/** Letters that nobody has received yet. */
export interface MailboxBacklog {
  readonly bytes: number;
  /** For how long the oldest of them has been there; 0 if there is none. */
  readonly oldestMs: number;
}

/**
 * The running gateways that share a store: who lives (leases, docs/design.md, D3) and their mailboxes (D4).
 *
 * An instance is a name that is used once: a name whose lease has lapsed never lives again, so that "this owner is lost"
 * stays true. A rejection with `StoreUnavailable` is an unknown outcome; every method may be called again.
 */
export interface Instances {
  /** Announces a new name, with a lease and an empty mailbox. Says what a renewal would; one declared dead is not held. */
  join(instance: string): Promise<LeaseRenewal>;
  /**
   * Renews a lease for its whole time, from when the store sees this; the caller counts from when it asked. Works also
   * while the store refuses writes for want of memory.
   */
  renew(instance: string): Promise<LeaseRenewal>;
  /** Gives up name and lease: nothing more is posted. What is in the mailbox can still be received, until it expires. */
  leave(instance: string): Promise<void>;
  /** Which of these hold their lease, in their order. */
  areAlive(instances: readonly string[]): Promise<boolean[]>;
  /** Makes sure that an instance without a lease never gets one again. False if it holds its lease. */
  declareDead(instance: string): Promise<boolean>;

  /**
   * Puts letters into a mailbox, all or none, in order, numbered from `first` on. Asking again with the same numbers puts
   * them in twice; the receiver drops repeats. `full`: the mailbox holds so much unread that these do not fit; one that is
   * empty takes anything. `gone`: the receiver does not live, nothing was put in.
   */
  enqueue(to: string, from: string, first: number, contents: readonly Buffer[]): Promise<'posted' | 'full' | 'gone'>;
  /**
   * Waits for letters, at most `waitMs`, and gives those after the last ones that this store handed out for this mailbox;
   * undefined if none came. After the store was away, those that are not discarded are given again. Always settles, a
   * little after `waitMs` at the latest, whatever becomes of connections. One call at a time for each mailbox.
   */
  receive(instance: string, waitMs: number): Promise<MailboxBatch | undefined>;
  /**
   * Takes back what a sender has posted to an instance without a lease, as far as it was not given to that yet: then it never
   * is. Returns the numbers of those letters. One that was posted twice may have been given once all the same; so may one
   * that was posted before a failover of the store.
   */
  withdraw(to: string, from: string): Promise<readonly number[]>;
  /** Frees what a delivery and those before it held of the mailbox. */
  acknowledge(instance: string, receipt: string): Promise<void>;
  /** What is in a mailbox that this store has not handed out of it. */
  backlog(instance: string): Promise<MailboxBacklog>;
}
