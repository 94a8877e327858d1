import { pino } from 'pino';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createConnectedStore, createStore } from '../../src/app/create-store.ts';
import type { GatewayConfig } from '../../src/config/config.ts';
import type { Store } from '../../src/core/store/store.ts';
import { aRecord } from '../contract/log-writer.ts';

const minuteMs = 60_000;
const config = {
  replay: { store: 'memory', totalMaxSizeBytes: 10_000 },
  cluster: { redis: undefined },
  derived: { recordTtlMs: 2 * minuteMs, logLimits: { maxEvents: 10, maxBytes: 1_000, maxAgeMs: minuteMs } },
} as unknown as GatewayConfig;

const unread = { emit: () => undefined, meterOf: undefined, metrics: undefined };

/** After how many minutes a session is forgotten that nobody touches, of 200. */
async function forgottenAfter(store: Store): Promise<number> {
  onTestFinished(() => store.close());
  await store.sessions.create('k', aRecord());
  for (let minutes = 1; minutes <= 200; minutes += 1) {
    await vi.advanceTimersByTimeAsync(minuteMs);
    if ((await store.sessions.find('k')) === undefined) return minutes;
  }
  return Number.POSITIVE_INFINITY;
}

it('[C-07] a store in memory keeps a record as long as recordTtlMs says, and that of a connection until it is ended', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { store, shared } = await createStore(
    { config, features: {}, environment: {} },
    pino({ level: 'silent' }),
    unread,
  );
  expect(shared).toBeUndefined();
  expect(await forgottenAfter(store)).toBe(2);
  const connected = createConnectedStore(config);
  expect(await forgottenAfter(connected)).toBe(Number.POSITIVE_INFINITY);
  await connected.sessions.end('k');
  expect(await connected.sessions.find('k')).toBeUndefined();
});
