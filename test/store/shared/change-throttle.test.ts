import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ChangeThrottle } from '../../../src/store/shared/change-throttle.ts';
import { StoreUnavailable } from '../../../src/store/store-unavailable.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function createTeller() {
  const told: string[] = [];
  const failed: unknown[] = [];
  const how = { isAway: false };
  const changes = {
    async publish(topic: string, text: Buffer) {
      if (how.isAway) throw new StoreUnavailable('unreachable');
      told.push(`${topic} ${text}`);
    },
    subscribe: () => Promise.reject(new Error('unused')),
  };
  const teller = new ChangeThrottle(changes, (cause) => failed.push(cause));
  return { teller, told, failed, how, tell: (topic: string, text: string) => teller.notify(topic, Buffer.from(text)) };
}

describe('changes of servers', () => {
  it('[P8] are told at once, and once more at the end of the second if they came again', () => {
    const { told, tell } = createTeller();
    for (let n = 0; n < 1_000; n++) tell('a', 'tools');
    tell('a', 'prompts');
    tell('b', 'tools');
    expect(told).toEqual(['a tools', 'a prompts', 'b tools']);
    vi.advanceTimersByTime(999);
    expect(told).toHaveLength(3);
    vi.advanceTimersByTime(1);
    expect(told.slice(3)).toEqual(['a tools']);
    tell('a', 'tools');
    vi.advanceTimersByTime(1_000);
    expect(told.slice(4)).toEqual(['a tools']);
    vi.advanceTimersByTime(5_000);
    expect(told).toHaveLength(5);
    tell('a', 'tools');
    expect(told).toHaveLength(6);
  });

  it('[P8] of too many kinds become one: anything may have changed', () => {
    const { told, tell } = createTeller();
    for (let n = 0; n < 5_000; n++) tell('a', `resource ${n}`);
    expect(told).toHaveLength(1_001);
    expect(told.at(-1)).toBe('a ');
    vi.advanceTimersByTime(1_000);
    expect(told.slice(1_001)).toEqual(['a ']);
  });

  it('that cannot be told are reported, and the next ones told', async () => {
    const { told, failed, how, tell } = createTeller();
    how.isAway = true;
    tell('a', 'tools');
    await vi.advanceTimersByTimeAsync(1_000);
    how.isAway = false;
    tell('a', 'tools');
    expect(failed).toHaveLength(1);
    expect(told).toEqual(['a tools']);
  });

  it('[C-18] are told no more, and keep no timer, once the teller is closed', () => {
    const { teller, told, tell } = createTeller();
    tell('a', 'tools');
    tell('a', 'tools');
    teller.close();
    expect(vi.getTimerCount()).toBe(0);
    tell('b', 'tools');
    vi.advanceTimersByTime(5_000);
    expect(told).toEqual(['a tools']);
  });
});
