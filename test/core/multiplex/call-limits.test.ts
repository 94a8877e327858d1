import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { overdueOf, type TimedCall } from '../../../src/core/multiplex/call-limits.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

const call = (): TimedCall => ({ activeAt: performance.now(), startedAt: performance.now() });

it('[P3] [P8] finds calls that are silent or take for too long', () => {
  const limits = { requestIdleMs: 100, requestTotalMs: 250 };
  vi.advanceTimersByTime(1_000); // the calls do not begin with the clock
  const [silent, busy] = [call(), call()];
  const overdueIn = (ms: number): readonly TimedCall[] => {
    vi.advanceTimersByTime(ms);
    const found = overdueOf([silent, busy], limits);
    busy.activeAt = performance.now();
    return found;
  };
  expect([overdueIn(99), overdueIn(1), overdueIn(90)]).toEqual([[], [silent], [silent]]);
  expect(overdueIn(60)).toEqual([silent, busy]);
});
