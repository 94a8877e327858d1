import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll } from 'vitest';
import type { ClusterStore } from '../../src/core/store/store.ts';
import { StoreUnavailable } from '../../src/core/store/store-unavailable.ts';
import { unreadMeter } from '../../src/core/util/telemetry/meter.ts';
import { createRedisStore, type RedisStoreOptions } from '../../src/features/redis/redis-store.ts';
import { waitFor } from '../support/wait-for.ts';
import type { MakeStore } from './store-fixture.ts';

/** Starts what all tests of a file or a `describe` use, before them, and stops it after them. Returns how they get it. */
export function startedForAll<T extends { stop(): unknown }>(start: () => Promise<T>): () => T {
  let started: T | undefined;
  beforeAll(async () => {
    started = await start();
  }, 60_000);
  afterAll(() => started?.stop());
  return () => {
    if (started === undefined) throw new Error('nothing has started yet');
    return started;
  };
}

let made = 0;

/** A namespace that no other test has. */
export const freshPrefix = (): string => {
  made += 1;
  return `test-${process.pid}-${made}`;
};

/** Limits that no test meets by accident. */
export const wideLimits = { maxEvents: 1_000, maxBytes: 8_000_000, maxAgeMs: 3_600_000 };

/** Options for a store, where a test does not care. */
export const redisOptions = (options: SomeRedisOptions): RedisStoreOptions => ({
  prefix: freshPrefix(),
  limits: wideLimits,
  leaseMs: 6_000,
  recordTtlMs: 3_600_000,
  commandTimeoutMs: 1_000,
  tls: {},
  onError: () => undefined,
  telemetry: { emit: () => undefined, commandSeconds: unreadMeter },
  ...options,
});

type SomeRedisOptions = Partial<RedisStoreOptions> & { readonly url: string };

/** A store whose connection answers. */
export async function openRedisStore(options: SomeRedisOptions): Promise<ClusterStore> {
  const store = createRedisStore(redisOptions({ commandTimeoutMs: 5_000, ...options }));
  await waitUntilHealthy(store);
  return store;
}

export const waitUntilHealthy = (store: ClusterStore): Promise<unknown> =>
  waitFor(() => store.healthyForMs() > 0, { what: 'the store to answer', intervalMs: 2, deadlineMs: 20_000 });

/** Stores of the contract suite: each in a namespace of its own, seen by two connections. Time is that of the machine. */
export function redisStores(options: () => SomeRedisOptions): MakeStore {
  return async ({ maxEvents, maxBytes, maxAgeMs, evicted, ...times }) => {
    const all = { ...options(), ...times, prefix: freshPrefix(), limits: { maxEvents, maxBytes, maxAgeMs, evicted } };
    const [store, other] = await Promise.all([openRedisStore(all), openRedisStore(all)]);
    return { store, other, isRealTime: true, advance: (ms) => delay(ms) };
  };
}

/** What every caller does: asks again until it has an answer. */
export const untilAnswered = <T>(ask: () => Promise<T>): Promise<Exclude<T, undefined | false | null>> =>
  waitFor(
    () =>
      ask().catch((error: unknown) => {
        if (error instanceof StoreUnavailable) return undefined;
        throw error;
      }),
    { what: 'an answer', deadlineMs: 40_000, intervalMs: 50 },
  ) as Promise<Exclude<T, undefined | false | null>>;
