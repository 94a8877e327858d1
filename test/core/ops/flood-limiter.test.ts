import { expect, it, onTestFinished, vi } from 'vitest';
import { FloodLimiter } from '../../../src/core/ops/flood-limiter.ts';

it('[S-14] [E-05] a flood is told of once a second and kind, with the number left out; nothing is lost', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const told: [string, number][] = [];
  const lines = new FloodLimiter<string>((thing, leftOut) => told.push([thing, leftOut]));
  for (let n = 0; n < 1_000; n++) lines.report('a', `a${n}`);
  lines.report('b', 'b');
  expect(told).toEqual([
    ['a0', 0],
    ['b', 0],
  ]);
  vi.advanceTimersByTime(1_000);
  expect(told.slice(2)).toEqual([['a999', 998]]);
  for (let ms = 0; ms < 10_000; ms += 10) {
    lines.report('a', 'x');
    vi.advanceTimersByTime(10);
  }
  lines.flush();
  const ofFlood = told.slice(3);
  expect(ofFlood.length).toBeLessThanOrEqual(11);
  expect(ofFlood.reduce((sum, [, leftOut]) => sum + 1 + leftOut, 0)).toBe(1_000);
  vi.advanceTimersByTime(10_000);
  lines.report('a', 'late');
  expect(told.at(-1)).toEqual(['late', 0]);
  expect(vi.getTimerCount()).toBe(1);
});
