import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StoreUnavailable } from '../../../../../src/core/store/store-unavailable.ts';
import { ChangeThrottle } from '../../../../../src/features/eras/modern/changes/change-throttle.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function createTeller(loss?: Buffer) {
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
  const teller = new ChangeThrottle(changes, (cause) => failed.push(cause), loss);
  return { teller, told, failed, how, tell: (topic: string, text: string) => teller.notify(topic, Buffer.from(text)) };
}

describe('changes of servers', () => {
  it('[P8] are told at once, ten times within a second, and once more at its end if they came again', () => {
    const { told, tell } = createTeller();
    for (let n = 0; n < 1_000; n++) tell('a', 'tools');
    tell('a', 'prompts');
    tell('b', 'tools');
    const tools = Array.from({ length: 10 }, () => 'a tools');
    expect(told).toEqual([...tools, 'a prompts', 'b tools']);
    vi.advanceTimersByTime(999);
    expect(told).toHaveLength(12);
    vi.advanceTimersByTime(1);
    expect(told.slice(12)).toEqual(['a tools']);
    tell('a', 'tools');
    expect(told.slice(13)).toEqual(['a tools']);
    vi.advanceTimersByTime(5_000);
    expect(told).toHaveLength(14);
    for (let n = 0; n < 11; n++) tell('a', 'tools');
    expect(told.slice(14)).toEqual(tools);
  });

  it('[P8] of many kinds are told once each, and again at the end of the second', () => {
    const { told, tell } = createTeller();
    for (let round = 0; round < 3; round++) for (let n = 0; n < 400; n++) tell('a', `resource ${n}`);
    expect(told).toHaveLength(500);
    vi.advanceTimersByTime(1_000);
    expect(new Set(told.slice(500)).size).toBe(400);
    expect(told).toHaveLength(900);
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

  it('[P7] that cannot be told are told as a loss once the store is back, once for each topic', async () => {
    vi.useRealTimers(); // the pauses are those of node:timers/promises
    const { teller, told, failed, how, tell } = createTeller(Buffer.from('anything'));
    how.isAway = true;
    for (const topic of ['a', 'b']) for (let n = 0; n < 3; n++) tell(topic, `resource ${n}`);
    await vi.waitFor(() => expect(failed).toHaveLength(6));
    expect(told).toEqual([]);
    how.isAway = false;
    await vi.waitFor(() => expect(told.sort()).toEqual(['a anything', 'b anything']), { timeout: 10_000 });
    teller.close();
  });

  it('[C-18] are told no more, and keep no timer, once the teller is closed', () => {
    const { teller, told, tell } = createTeller();
    for (let n = 0; n < 11; n++) tell('a', 'tools');
    teller.close();
    expect(vi.getTimerCount()).toBe(0);
    tell('b', 'tools');
    vi.advanceTimersByTime(5_000);
    expect(told).toHaveLength(10);
    expect(new Set(told)).toEqual(new Set(['a tools']));
  });
});
