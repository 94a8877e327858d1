import { randomUUID } from 'node:crypto';
import { BoundedMap } from '../../util/bounded-map.ts';
import type { Instances, LeaseRenewal } from '../instances.ts';
import { createMailbox, type Mailbox } from './mailbox.ts';

/** The leases and mailboxes of the gateways in this process. */
export interface MemoryInstances extends Instances {
  /** Removes expired mailboxes. */
  sweep(): void;
  /** Removes all instances and ends their waiting `receive` calls. */
  clear(): void;
}

/** The times and limits of instances. */
export interface MemoryInstancesOptions {
  readonly leaseMs: number;
  /** How many bytes a mailbox may have unread (P8). */
  readonly mailboxMaxBytes: number;
  readonly now: () => number;
  /** When the store was last empty; now by default. A store that cannot lose data alone gives 0. */
  readonly createdMs?: number;
}

interface Instance {
  address?: string;
  leaseEndsMs: number;
  readonly mailbox: Mailbox;
}

/** How many names are remembered as dead. A name is used once, so an older one matters only to a very late `join`. */
const maxDead = 10_000;

/** For how long the mailbox of a lost instance is kept. */
const mailboxRetentionMs = 120_000;

/** Makes an empty table. Only `join` gives a name a lease: a renewal never revives a lapsed lease. */
export function createMemoryInstances(options: MemoryInstancesOptions): MemoryInstances {
  const { leaseMs, mailboxMaxBytes, now } = options;
  const instances = new Map<string, Instance>();
  const dead = new BoundedMap<string, true>(maxDead);
  const storeGeneration = randomUUID();
  const { createdMs = now() } = options;

  const drop = (name: string): void => {
    instances.get(name)?.mailbox.close();
    instances.delete(name);
  };

  /** Finds an instance that holds its lease. The mailbox outlives the lease for a while. */
  const findAlive = (name: string): Instance | undefined => {
    const instance = instances.get(name);
    return instance !== undefined && instance.leaseEndsMs > now() ? instance : undefined;
  };

  const renewLease = (name: string): LeaseRenewal => {
    const instance = findAlive(name);
    if (instance !== undefined) instance.leaseEndsMs = now() + leaseMs;
    return {
      held: instance !== undefined,
      dataAgeMs: now() - createdMs,
      storeGeneration,
      leaseEndsMs: now() + leaseMs,
    };
  };

  return {
    async join(name) {
      if (findAlive(name) === undefined && !dead.has(name)) {
        instances.set(name, { leaseEndsMs: now() + leaseMs, mailbox: createMailbox(mailboxMaxBytes, now) });
      }
      return renewLease(name);
    },
    async renew(name) {
      return renewLease(name);
    },
    async leave(name) {
      const instance = findAlive(name);
      if (instance !== undefined) instance.leaseEndsMs = now();
    },
    async areAlive(names) {
      return names.map((name) => findAlive(name) !== undefined);
    },
    async publishAddress(name, address) {
      const instance = findAlive(name);
      if (instance !== undefined) instance.address = address;
    },
    async addressOf(name) {
      return instances.get(name)?.address;
    },
    async declareDead(name) {
      if (findAlive(name) !== undefined) return false;
      dead.set(name, true);
      return true;
    },

    async enqueue(to, from, first, contents) {
      const instance = findAlive(to);
      if (instance === undefined) return 'gone';
      const messages = contents.map((content, index) => ({ from, number: first + index, content }));
      return instance.mailbox.put(messages) ? 'posted' : 'full';
    },
    async receive(name, waitMs) {
      const mailbox = instances.get(name)?.mailbox;
      if (mailbox !== undefined) return mailbox.take(waitMs);
      // Wait as for an empty mailbox: a caller that retries at once would loop without a pause.
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      return undefined;
    },
    async withdraw(name, from) {
      return findAlive(name) === undefined ? (instances.get(name)?.mailbox.withdraw(from) ?? []) : [];
    },
    async acknowledge(name, ackToken) {
      instances.get(name)?.mailbox.acknowledge(ackToken);
    },
    async backlog(name) {
      return instances.get(name)?.mailbox.backlog() ?? { bytes: 0, oldestMs: 0 };
    },

    sweep() {
      for (const [name, { leaseEndsMs }] of instances) {
        if (leaseEndsMs + mailboxRetentionMs <= now()) drop(name);
      }
    },
    clear() {
      for (const name of instances.keys()) drop(name);
    },
  };
}
