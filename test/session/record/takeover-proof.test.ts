import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Proof } from '../../../src/session/record/takeover-proof.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('[U-01] tells once that a session makes progress: when its server answers, or has been up for a while', () => {
  const tell = vi.fn();
  const up = { is: false };
  const proof = new Proof({ isServerUp: () => up.is, tell });
  vi.advanceTimersByTime(60_000);
  expect(tell).not.toHaveBeenCalled(); // its server is being started again
  up.is = true;
  vi.advanceTimersByTime(10_000);
  expect(tell).toHaveBeenCalledTimes(1);
  proof.give();
  vi.advanceTimersByTime(60_000);
  expect(tell).toHaveBeenCalledTimes(1);

  const answered = new Proof({ isServerUp: () => false, tell });
  answered.give();
  expect(tell).toHaveBeenCalledTimes(2);

  const ended = new Proof({ isServerUp: () => true, tell });
  ended.end();
  ended.give();
  vi.advanceTimersByTime(60_000);
  expect(tell).toHaveBeenCalledTimes(2);
});
