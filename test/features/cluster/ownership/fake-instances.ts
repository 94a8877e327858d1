import type { Instances, LeaseRenewal } from '../../../../src/core/store/instances.ts';

/** A call that waits for the test to say how it went. */
export interface Asked<T> {
  /** The instance that it is about. */
  readonly name: string;
  /** When it was made, on the monotonic clock. */
  readonly at: number;
  answer(value: T): void;
  fail(cause: Error): void;
}

/** Instances of which a test decides every answer about leases. */
export interface FakeInstances extends Instances {
  readonly joins: Asked<LeaseRenewal>[];
  readonly renewals: Asked<LeaseRenewal>[];
  readonly left: string[];
  /** What calls answer by themselves; undefined: they wait for the test. */
  automatic: { renewal?: LeaseRenewal | undefined };
}

export function createFakeInstances(): FakeInstances {
  const joins: Asked<LeaseRenewal>[] = [];
  const renewals: Asked<LeaseRenewal>[] = [];
  const left: string[] = [];
  const automatic: FakeInstances['automatic'] = {};
  const ask = (calls: Asked<LeaseRenewal>[], name: string): Promise<LeaseRenewal> => {
    const answered = new Promise<LeaseRenewal>(
      (answer, fail) => void calls.push({ name, at: performance.now(), answer, fail }),
    );
    if (automatic.renewal !== undefined) calls.at(-1)?.answer(automatic.renewal);
    return answered;
  };
  return {
    ...{ joins, renewals, left, automatic },
    join: (name) => ask(joins, name),
    renew: (name) => ask(renewals, name),
    leave: async (name) => void left.push(name),
    areAlive: async (names) => names.map(() => true),
    declareDead: async () => true,
    publishAddress: async () => undefined,
    addressOf: async () => undefined,
    addresses: async () => new Map(),
  };
}
