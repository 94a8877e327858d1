import { randomUUID } from 'node:crypto';
import type { Instances, Renewal } from '../instances.ts';
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

/**
 * Makes an empty table. A name that has lapsed is gone from it, and only `join` enters names: so it never lives again,
 * and a table of the dead is not needed.
 */
export function createMemoryInstances({ leaseMs, mailboxMaxBytes, now }: MemoryInstancesOptions): MemoryInstances {
  const instances = new Map<string, Instance>();
  /** Mailboxes of names that left, until they were read to their end. */
  const left = new Map<string, Mailbox>();
  const birth = randomUUID();
  const bornMs = now();

  const drop = (name: string): void => {
    instances.get(name)?.mailbox.close();
    instances.delete(name);
  };

  const living = (name: string): Instance | undefined => {
    const instance = instances.get(name);
    if (instance !== undefined && instance.leaseEndsMs <= now()) drop(name);
    return instances.get(name);
  };

  const renewal = (name: string): Renewal => {
    const instance = living(name);
    if (instance !== undefined) instance.leaseEndsMs = now() + leaseMs;
    return { held: instance !== undefined, dataAgeMs: now() - bornMs, birth };
  };

  return {
    async join(name) {
      if (living(name) === undefined) {
        instances.set(name, { leaseEndsMs: now() + leaseMs, mailbox: createMailbox(mailboxMaxBytes) });
      }
      return renewal(name);
    },
    async renew(name) {
      return renewal(name);
    },
    async leave(name) {
      const instance = living(name);
      instances.delete(name);
      if (instance !== undefined) left.set(name, instance.mailbox);
    },
    async areAlive(names) {
      return names.map((name) => living(name) !== undefined);
    },
    async declareDead(name) {
      return living(name) === undefined;
    },

    async post(to, from, first, contents) {
      const instance = living(to);
      if (instance === undefined) return 'gone';
      const letters = contents.map((content, index) => ({ from, number: first + index, content }));
      return instance.mailbox.put(letters) ? 'posted' : 'full';
    },
    async receive(name, waitMs) {
      const instance = living(name);
      if (instance !== undefined) return instance.mailbox.take(waitMs);
      const rest = await left.get(name)?.take(waitMs);
      if (rest === undefined) left.delete(name);
      else return rest;
      // As if nothing came, and no sooner: who asks again at once would never stop.
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      return undefined;
    },
    async discard(name, receipt) {
      living(name)?.mailbox.discard(receipt);
    },

    sweep() {
      for (const name of instances.keys()) living(name);
    },
    clear() {
      for (const name of instances.keys()) drop(name);
    },
  };
}
