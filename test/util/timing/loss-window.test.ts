import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { LossWindow } from '../../../src/util/timing/loss-window.ts';

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
});

const countTimes = (losses: LossWindow, times: number): boolean[] =>
  Array.from({ length: times }, () => losses.count());

it('reports a crash loop with the first loss beyond the limit', () => {
  expect(countTimes(new LossWindow(2, 1_000), 4)).toEqual([false, false, true, true]);
});

it('forgets a loss once the window is over', () => {
  const losses = new LossWindow(2, 1_000);
  countTimes(losses, 1);
  vi.advanceTimersByTime(999);
  countTimes(losses, 1);
  vi.advanceTimersByTime(1);
  expect(countTimes(losses, 2)).toEqual([false, true]);
});

it('forgets all losses when it is cleared', () => {
  const losses = new LossWindow(1, 1_000);
  countTimes(losses, 2);
  losses.clear();
  expect(countTimes(losses, 2)).toEqual([false, true]);
});
