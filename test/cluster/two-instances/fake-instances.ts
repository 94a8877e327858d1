import type { Delivery, Instances, Letter, Renewal } from '../../../src/store/instances.ts';

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
  readonly joins: Asked<Renewal>[];
  readonly renewals: Asked<Renewal>[];
  readonly posts: PostCall[];
  readonly left: string[];
  readonly discarded: string[];
  /** Puts letters in the mailbox that is being read. */
  deliver(...letters: Letter[]): void;
  /** What calls answer by themselves; undefined: they wait for the test. */
  automatic: { renewal?: Renewal | undefined };
}

export function createFakeInstances(): FakeInstances {
  const joins: Asked<Renewal>[] = [];
  const renewals: Asked<Renewal>[] = [];
  const posts: PostCall[] = [];
  const left: string[] = [];
  const discarded: string[] = [];
  let mailbox: Letter[] = [];
  let wake: (() => void) | undefined;
  const automatic: FakeInstances['automatic'] = {};

  const ask = <T, C extends Asked<T>>(calls: C[], call: Omit<C, 'answer' | 'fail' | 'at'>): Promise<T> =>
    new Promise((answer, fail) => void calls.push({ ...call, at: performance.now(), answer, fail } as unknown as C));
  const renewal = (calls: Asked<Renewal>[], name: string): Promise<Renewal> => {
    const answered = ask<Renewal, Asked<Renewal>>(calls, { name });
    if (automatic.renewal !== undefined) calls.at(-1)?.answer(automatic.renewal);
    return answered;
  };
  const taken = (): Delivery | undefined => {
    const letters = mailbox;
    mailbox = [];
    return letters.length === 0 ? undefined : { letters, receipt: `${letters.length}` };
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
    post: (to, from, first, contents) =>
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
    waiting: async () => ({ bytes: 0, oldestMs: 0 }),
    async discard(_name, receipt) {
      discarded.push(receipt);
    },
    deliver(...letters) {
      mailbox.push(...letters);
      wake?.();
    },
  };
}
