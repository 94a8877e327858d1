import type { Instances, LeaseRenewal, MailboxBatch, MailboxMessage } from '../../../src/store/instances.ts';

/** A call that waits for the test to say how it went. */
export interface Asked<T> {
  /** The instance that it is about. */
  readonly name: string;
  /** When it was made, on the monotonic clock. */
  readonly at: number;
  answer(value: T): void;
  fail(cause: Error): void;
}

export interface PostCall extends Asked<'posted' | 'full' | 'gone'> {
  readonly from: string;
  readonly first: number;
  readonly contents: readonly string[];
}

/** Instances of which a test decides every answer. `receive` waits as it should, and gives what `deliver` brings. */
export interface FakeInstances extends Instances {
  readonly joins: Asked<LeaseRenewal>[];
  readonly renewals: Asked<LeaseRenewal>[];
  readonly posts: PostCall[];
  readonly left: string[];
  readonly discarded: string[];
  /** Puts letters in the mailbox that is being read. */
  deliver(...letters: MailboxMessage[]): void;
  /** What calls answer by themselves; undefined: they wait for the test. */
  automatic: { renewal?: LeaseRenewal | undefined };
}

export function createFakeInstances(): FakeInstances {
  const joins: Asked<LeaseRenewal>[] = [];
  const renewals: Asked<LeaseRenewal>[] = [];
  const posts: PostCall[] = [];
  const left: string[] = [];
  const discarded: string[] = [];
  let mailbox: MailboxMessage[] = [];
  let wake: (() => void) | undefined;
  const automatic: FakeInstances['automatic'] = {};

  const ask = <T, C extends Asked<T>>(calls: C[], call: Omit<C, 'answer' | 'fail' | 'at'>): Promise<T> =>
    new Promise((answer, fail) => void calls.push({ ...call, at: performance.now(), answer, fail } as unknown as C));
  const renewal = (calls: Asked<LeaseRenewal>[], name: string): Promise<LeaseRenewal> => {
    const answered = ask<LeaseRenewal, Asked<LeaseRenewal>>(calls, { name });
    if (automatic.renewal !== undefined) calls.at(-1)?.answer(automatic.renewal);
    return answered;
  };
  const taken = (): MailboxBatch | undefined => {
    const letters = mailbox;
    mailbox = [];
    return letters.length === 0 ? undefined : { messages: letters, ackToken: `${letters.length}` };
  };

  return {
    ...{ joins, renewals, posts, left, discarded, automatic },
    join: (name) => renewal(joins, name),
    renew: (name) => renewal(renewals, name),
    async leave(name) {
      left.push(name);
      wake?.();
    },
    areAlive: async (names) => names.map(() => true),
    declareDead: async () => true,
    publishAddress: async () => undefined,
    addressOf: async () => undefined,
    enqueue: (to, from, first, contents) =>
      ask(posts, { name: to, from, first, contents: contents.map((content) => content.toString()) }),
    async receive(_name, waitMs) {
      if (mailbox.length > 0) return taken();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      wake = undefined;
      return taken();
    },
    withdraw: async () => [],
    backlog: async () => ({ bytes: 0, oldestMs: 0 }),
    async acknowledge(_name, receipt) {
      discarded.push(receipt);
    },
    deliver(...letters) {
      mailbox.push(...letters);
      wake?.();
    },
  };
}
