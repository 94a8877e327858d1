import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { TakeoverProof } from '../../../src/session/record/takeover-proof.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('[U-01] a session that was taken over reports progress once, when its server answers or has been up for a while', () => {
  const tell = vi.fn();
  const up = { is: false };
  const proof = new TakeoverProof({ isServerUp: () => up.is, confirm: tell });
  vi.advanceTimersByTime(60_000);
  expect(tell).not.toHaveBeenCalled(); // its server is being started again
  up.is = true;
  vi.advanceTimersByTime(10_000);
  expect(tell).toHaveBeenCalledTimes(1);
  proof.confirm();
  vi.advanceTimersByTime(60_000);
  expect(tell).toHaveBeenCalledTimes(1);

  const answered = new TakeoverProof({ isServerUp: () => false, confirm: tell });
  answered.confirm();
  expect(tell).toHaveBeenCalledTimes(2);

  const ended = new TakeoverProof({ isServerUp: () => true, confirm: tell });
  ended.end();
  ended.confirm();
  vi.advanceTimersByTime(60_000);
  expect(tell).toHaveBeenCalledTimes(2);
});
