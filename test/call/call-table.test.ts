import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type CallInFlight, CallTable } from '../../src/call/call-table.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

const call = (id: string | number): CallInFlight => ({
  id,
  activeAt: performance.now(),
  startedAt: performance.now(),
});

describe('a table of calls', () => {
  it('has the calls in the order of their arrival, by the id with its type', () => {
    const table = new CallTable();
    const [one, text, two] = [call(1), call('1'), call(2)];
    for (const each of [one, text, two]) table.add(each);
    expect([table.size, table.all(), [...table.values()]]).toEqual([3, [one, text, two], [one, text, two]]);
    expect([table.get(1), table.get('1'), table.get('2'), table.get(null), table.get(undefined)]).toEqual([
      one,
      text,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('gives a call away once, and knows another one with the same id from it', () => {
    const table = new CallTable();
    const [first, second] = [call(1), call(1)];
    table.add(first);
    expect([table.take(1), table.take(1), table.take(null)]).toEqual([first, undefined, undefined]);
    table.add(second);
    expect([table.has(1), table.holds(first), table.holds(second)]).toEqual([true, false, true]);
  });

  it('[P9] says when it is empty, and since when', async () => {
    const table = new CallTable();
    await table.whenEmpty();
    for (const id of [1, 2]) table.add(call(id));
    let isEmpty = false;
    const empty = table.whenEmpty().then(() => {
      isEmpty = true;
    });
    vi.advanceTimersByTime(50);
    table.take(1);
    await Promise.resolve();
    expect(isEmpty).toBe(false);
    table.take(2);
    expect(table.emptySince).toBe(performance.now());
    await empty;
    expect(isEmpty).toBe(true);
  });

  it('[P3] [P8] finds calls that are silent or take for too long', () => {
    const limits = { requestIdleMs: 100, requestTotalMs: 250 };
    vi.advanceTimersByTime(1_000); // the calls do not begin with the clock
    const table = new CallTable();
    const [silent, busy] = [call(1), call(2)];
    table.add(silent);
    table.add(busy);
    const overdueIn = (ms: number): readonly CallInFlight[] => {
      vi.advanceTimersByTime(ms);
      const found = table.overdue(limits);
      busy.activeAt = performance.now();
      return found;
    };
    expect([overdueIn(99), overdueIn(1), overdueIn(90)]).toEqual([[], [silent], [silent]]);
    expect(overdueIn(60)).toEqual([silent, busy]);
  });
});
