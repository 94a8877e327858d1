import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RecordRenewal } from '../../../src/core/registry/upkeep.ts';
import type { Store } from '../../../src/core/store/store.ts';

const ttlMs = 3_600_000;
const roundMs = ttlMs / 4;
const sweepMs = 30_000;

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function renewals(count: number) {
  const sessions = new Map(Array.from({ length: count }, (_, index) => [`s${index}`, index]));
  /** When each was renewed. */
  const renewedAt = new Map<string, number[]>();
  const portions: number[] = [];
  const renew = vi.fn((keys: readonly string[]) => {
    portions.push(keys.length);
    for (const key of keys) renewedAt.set(key, [...(renewedAt.get(key) ?? []), performance.now()]);
    return Promise.resolve();
  });
  const emit = vi.fn();
  const renewal = new RecordRenewal({ sessions: { renew } } as unknown as Store, ttlMs, emit);
  const pass = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += sweepMs) {
      vi.advanceTimersByTime(sweepMs);
      renewal.renewDue(sessions);
    }
  };
  return { sessions, renewedAt, portions, renew, emit, pass };
}

test('each session is renewed once in a round, and a round is no burst', () => {
  const { renewedAt, portions, pass } = renewals(3_000);
  pass(roundMs);
  expect(portions).toEqual([]);
  pass(roundMs);
  expect(renewedAt.size).toBe(3_000);
  expect([...renewedAt.values()].every((times) => times.length === 1)).toBe(true);
  expect(Math.max(...portions)).toBeLessThanOrEqual(3_000 / (roundMs / sweepMs) + 1);
});

test('no session waits for longer than half of what it lives without', () => {
  const { sessions, renewedAt, pass } = renewals(10);
  const openedAt = performance.now();
  for (let round = 0; round < 6; round += 1) {
    pass(roundMs);
    sessions.delete('s0');
    sessions.set('s0', 0); // now the newest
  }
  for (const times of renewedAt.values()) {
    const gaps = times.map((at, index) => at - (times[index - 1] ?? openedAt));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(ttlMs / 2 + sweepMs);
  }
});

test('a session that has ended is not renewed, and a store that is away is told of once', async () => {
  const { sessions, renew, renewedAt, emit, pass } = renewals(2);
  pass(roundMs);
  sessions.delete('s1');
  renew.mockRejectedValueOnce(new Error('away'));
  pass(roundMs);
  await Promise.resolve();
  expect(renewedAt.has('s1')).toBe(false);
  expect(emit).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ type: 'store-failed' }));
  pass(roundMs);
  expect(renewedAt.get('s0')).toHaveLength(1);
});

test('without sessions the store is not asked', () => {
  const { renew, pass } = renewals(0);
  pass(roundMs * 3);
  expect(renew).not.toHaveBeenCalled();
});
