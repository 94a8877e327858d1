import { randomUUID } from 'node:crypto';
import type { Instances, LeaseRenewal } from '../instances.ts';
import { createMailbox, type Mailbox } from './mailbox.ts';

/** Leases and mailboxes of the gateways in this process. */
export interface MemoryInstances extends Instances {
  /** Removes what is over its time. */
  sweep(): void;
  /** Ends what waits. */
  clear(): void;
}

/** The times and limits of instances. */
export interface MemoryInstancesOptions {
  readonly leaseMs: number;
  /** What a mailbox may hold unread (P8). */
  readonly mailboxMaxBytes: number;
  readonly now: () => number;
}

interface Instance {
  leaseEndsMs: number;
  readonly mailbox: Mailbox;
}

/** Names that are remembered as dead. They are used once, so that more would only tell of a `join` that comes very late. */
const maxDead = 10_000;

/** For how long the mailbox of a lost instance is kept. */
const mailboxRestMs = 120_000;

/** Makes an empty table. Only `join` gives a name its first lease: a renewal revives none that has lapsed. */
export function createMemoryInstances({ leaseMs, mailboxMaxBytes, now }: MemoryInstancesOptions): MemoryInstances {
  const instances = new Map<string, Instance>();
  const dead = new Set<string>();
  const birth = randomUUID();
  const bornMs = now();

  const drop = (name: string): void => {
    instances.get(name)?.mailbox.close();
    instances.delete(name);
  };

  /** Only while its lease is held; what is in its mailbox outlives that for a while. */
  const living = (name: string): Instance | undefined => {
    const instance = instances.get(name);
    return instance !== undefined && instance.leaseEndsMs > now() ? instance : undefined;
  };

  const renewal = (name: string): LeaseRenewal => {
    const instance = living(name);
    if (instance !== undefined) instance.leaseEndsMs = now() + leaseMs;
    return { held: instance !== undefined, dataAgeMs: now() - bornMs, storeGeneration: birth };
  };

  return {
    async join(name) {
      if (living(name) === undefined && !dead.has(name)) {
        instances.set(name, { leaseEndsMs: now() + leaseMs, mailbox: createMailbox(mailboxMaxBytes, now) });
      }
      return renewal(name);
    },
    async renew(name) {
      return renewal(name);
    },
    async leave(name) {
      const instance = living(name);
      if (instance !== undefined) instance.leaseEndsMs = now();
    },
    async areAlive(names) {
      return names.map((name) => living(name) !== undefined);
    },
    async declareDead(name) {
      if (living(name) !== undefined) return false;
      dead.add(name);
      for (const oldest of dead) {
        if (dead.size <= maxDead) break;
        dead.delete(oldest);
      }
      return true;
    },

    async enqueue(to, from, first, contents) {
      const instance = living(to);
      if (instance === undefined) return 'gone';
      const letters = contents.map((content, index) => ({ from, number: first + index, content }));
      return instance.mailbox.put(letters) ? 'posted' : 'full';
    },
    async receive(name, waitMs) {
      const mailbox = instances.get(name)?.mailbox;
      if (mailbox !== undefined) return mailbox.take(waitMs);
      // As if nothing came, and no sooner: who asks again at once would never stop.
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      return undefined;
    },
    async withdraw(name, from) {
      return living(name) === undefined ? (instances.get(name)?.mailbox.withdraw(from) ?? []) : [];
    },
    async acknowledge(name, receipt) {
      instances.get(name)?.mailbox.discard(receipt);
    },
    async backlog(name) {
      return instances.get(name)?.mailbox.waiting() ?? { bytes: 0, oldestMs: 0 };
    },

    sweep() {
      for (const [name, { leaseEndsMs }] of instances) {
        if (leaseEndsMs + mailboxRestMs <= now()) drop(name);
      }
    },
    clear() {
      for (const name of instances.keys()) drop(name);
    },
  };
}
