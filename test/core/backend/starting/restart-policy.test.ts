import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { RestartPolicy } from '../../../../src/core/backend/starting/restart-policy.ts';

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
});

/** The pauses of a server that is lost this often, and started again after each pause; `loop` before those of crash loops. */
function pausesOf(policy: RestartPolicy, times: number, lose = () => policy.countLoss()): (number | string)[] {
  return Array.from({ length: times }, () => {
    const isLoop = lose();
    const { pauseMs } = policy;
    vi.advanceTimersByTime(pauseMs);
    policy.noteStart();
    return isLoop ? `loop ${pauseMs}` : pauseMs;
  });
}

const local = () => new RestartPolicy({ isRemote: false });

describe('a local server', () => {
  it('starts at once after the first loss, then after growing pauses, and after the sixth loss in a crash loop', () => {
    const expected = [0, 250, 500, 1_000, 2_000, 'loop 30000', 'loop 60000', 'loop 60000'];
    expect(pausesOf(local(), 8)).toEqual(expected);
    const policy = local();
    expect(pausesOf(policy, 8, () => policy.countFailedStart())).toEqual(expected);
  });

  it('that has worked since starts at once, but six losses within a minute are a crash loop', () => {
    const policy = local();
    const lose = () => {
      policy.hasWorked = true;
      return policy.countLoss();
    };
    expect(pausesOf(policy, 7, lose)).toEqual([0, 0, 0, 0, 0, 'loop 30000', 0]);
  });

  it.each([
    [999, 250],
    [1_000, 0],
  ])('that ran for %i ms before it was lost again has a pause of %i ms', (ranMs, pauseMs) => {
    const policy = local();
    pausesOf(policy, 1);
    vi.advanceTimersByTime(ranMs);
    policy.countLoss();
    expect(policy.pauseMs).toBe(pauseMs);
  });

  it('that is lost every 13 seconds is in no crash loop', () => {
    const policy = local();
    for (let n = 0; n < 20; n += 1) {
      expect(policy.countLoss()).toBe(false);
      policy.noteStart();
      vi.advanceTimersByTime(13_000);
    }
  });

  it('that works again after a crash loop has the next one only after six more losses', () => {
    const policy = local();
    pausesOf(policy, 6);
    policy.hasWorked = true;
    expect(pausesOf(policy, 6)).toEqual([0, 250, 500, 1_000, 2_000, 'loop 30000']);
  });

  it('is waited for from its last loss on', () => {
    const policy = local();
    pausesOf(policy, 4);
    policy.countFailedStart();
    vi.advanceTimersByTime(1_500);
    expect(policy.pauseMs).toBe(500);
    vi.advanceTimersByTime(1_000);
    expect(policy.pauseMs).toBe(0);
  });

  it('counts its failed starts until one succeeds', () => {
    const policy = local();
    policy.countLoss();
    policy.countFailedStart();
    policy.countFailedStart();
    expect(policy.failedStarts).toBe(2);
    policy.noteStart();
    expect(policy.failedStarts).toBe(0);
  });
});

describe('a remote server', () => {
  it('that does not start is in no crash loop, and its pauses are random', () => {
    const policy = new RestartPolicy({ isRemote: true, maxPauseMs: 1_000 });
    for (const most of [250, 250, 500, 1_000, 1_000, 1_000, 1_000]) {
      expect(policy.countFailedStart()).toBe(false);
      expect(policy.pauseMs).toBeLessThanOrEqual(most);
      expect(policy.pauseMs).toBeGreaterThanOrEqual(most / 2);
    }
  });

  it('whose connections end at once is in a crash loop, and no more once one has worked', () => {
    const policy = new RestartPolicy({ isRemote: true });
    const isLoop = () => {
      const found = policy.countLoss();
      policy.noteStart();
      return found;
    };
    expect(Array.from({ length: 6 }, isLoop)).toEqual([false, false, false, false, false, true]);
    for (let n = 0; n < 12; n += 1) {
      policy.hasWorked = true;
      expect(isLoop()).toBe(false);
    }
  });
});
