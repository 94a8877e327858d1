import { pino } from 'pino';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createConnectedStore, createStore } from '../../src/app/create-store.ts';
import type { GatewayConfig } from '../../src/config/config.ts';
import { branchesOf } from '../../src/config/tree/branches.ts';
import type { Store } from '../../src/store/store.ts';
import { aRecord } from '../contract/log-writer.ts';

const minuteMs = 60_000;
const limits = {
  logMaxEvents: 10,
  logMaxBytes: 1_000,
  logMaxAgeMs: minuteMs,
  logTotalMaxBytes: 10_000,
  store: 'memory',
  maxLineBytes: 1_000,
  recordTtlMs: 2 * minuteMs,
};

const unread = { emit: () => undefined, meterOf: undefined };

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
  const config = limits as unknown as GatewayConfig;
  const { store, shared } = await createStore(config, branchesOf(config), pino({ level: 'silent' }), unread);
  expect(shared).toBeUndefined();
  expect(await forgottenAfter(store)).toBe(2);
  const connected = createConnectedStore(branchesOf(config).replay, limits.maxLineBytes);
  expect(await forgottenAfter(connected)).toBe(Number.POSITIVE_INFINITY);
  await connected.sessions.end('k');
  expect(await connected.sessions.find('k')).toBeUndefined();
});
