import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { afterCatchUp, PauseWatch, TimeLimit, timeLimitSignal } from '../../../../src/core/util/timing/time-limit.ts';

/** What the gateway stood still: its timers come late, and time has passed. */
let stoppedMs = 0;

beforeEach(() => {
  vi.useFakeTimers();
  stoppedMs = 0;
  const { now } = performance;
  vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + stoppedMs);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test('a limit is over when its time is', () => {
  const onOver = vi.fn();
  new TimeLimit(onOver, 1_000);
  vi.advanceTimersByTime(999);
  expect(onOver).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onOver).toHaveBeenCalledTimes(1);
});

test('a limit that is cleared is never over', () => {
  const onOver = vi.fn();
  const limit = new TimeLimit(onOver, 1_000);
  limit.clear();
  vi.advanceTimersByTime(5_000);
  expect(onOver).not.toHaveBeenCalled();
});

test('after the gateway stood still, what has arrived is read before a limit is over', () => {
  const onOver = vi.fn();
  const [answered, silent] = [new TimeLimit(onOver, 1_000), new TimeLimit(onOver, 1_000)];
  stoppedMs = 60_000;
  vi.advanceTimersByTime(1_000);
  expect(onOver).not.toHaveBeenCalled();
  answered.clear();
  vi.advanceTimersByTime(100);
  expect(onOver).toHaveBeenCalledTimes(1);
  silent.clear();
});

test('after a long turn of the event loop, what has arrived is read before a limit is over', () => {
  const onOver = vi.fn();
  const [answered, silent] = [new TimeLimit(onOver, 1_000), new TimeLimit(onOver, 1_000)];
  stoppedMs = 100;
  vi.advanceTimersByTime(1_000);
  answered.clear();
  vi.advanceTimersByTime(99);
  expect(onOver).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onOver).toHaveBeenCalledTimes(1);
  silent.clear();
});

test('after the gateway stood still, what has arrived is read before overdue peers are looked for', () => {
  const run = vi.fn();
  setInterval(afterCatchUp(run, 1_000), 1_000);
  vi.advanceTimersByTime(3_000);
  expect(run).toHaveBeenCalledTimes(3);
  stoppedMs = 60_000;
  vi.advanceTimersByTime(1_000);
  expect(run).toHaveBeenCalledTimes(3);
  vi.advanceTimersByTime(100);
  expect(run).toHaveBeenCalledTimes(4);
  vi.advanceTimersByTime(900);
  expect(run).toHaveBeenCalledTimes(5);
});

test('a signal with a limit is aborted with a time-out, and not before what has arrived is read', () => {
  const signal = timeLimitSignal(1_000);
  stoppedMs = 60_000;
  vi.advanceTimersByTime(1_000);
  expect(signal.aborted).toBe(false);
  vi.advanceTimersByTime(100);
  expect(signal.reason).toMatchObject({ name: 'TimeoutError' });
});

test('a watch knows of a pause until what has arrived is read', () => {
  const watch = new PauseWatch();
  vi.advanceTimersByTime(5_000);
  expect(watch.hasJustStoodStill()).toBe(false);
  stoppedMs = 60_000;
  expect(watch.hasJustStoodStill()).toBe(true);
  vi.advanceTimersByTime(99);
  expect(watch.hasJustStoodStill()).toBe(true);
  vi.advanceTimersByTime(1);
  expect(watch.hasJustStoodStill()).toBe(false);
  watch.close();
});
