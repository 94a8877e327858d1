import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RequestRate } from '../../../src/core/quota/rate.ts';

/** Uses that were let in, of those that came at these times. */
function letIn(rate: RequestRate, times: readonly number[]): number[] {
  return times.filter((atMs) => {
    const has = rate.hasRoom(atMs);
    if (has) rate.use(1, atMs);
    return has;
  });
}

describe('a rate', () => {
  it('lets in its burst at once, and then one after each time', () => {
    const rate = new RequestRate({ burst: 3, everyMs: 100 });
    const times = Array.from({ length: 100 }, (_, n) => 5_000 + n * 5);
    expect(letIn(rate, times)).toEqual([5_000, 5_005, 5_010, 5_100, 5_200, 5_300, 5_400]);
  });

  it('lets in its burst again after a rest, and no more than that', () => {
    const rate = new RequestRate({ burst: 3, everyMs: 100 });
    letIn(rate, Array(9).fill(0));
    expect(letIn(rate, Array(9).fill(300))).toHaveLength(3);
    expect(letIn(rate, Array(9).fill(1_000_000))).toHaveLength(3);
  });

  it('never lets in more than the burst and what time allows, whenever they come', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60_000 }),
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.nat(2_000), { minLength: 1, maxLength: 300 }),
        (perMinute, burst, gaps) => {
          const everyMs = 60_000 / perMinute;
          let atMs = 1e9;
          const times = gaps.map((gap) => {
            atMs += gap;
            return atMs;
          });
          const [first = 0, ...more] = letIn(new RequestRate({ burst, everyMs }), times);
          const last = more.at(-1) ?? first;
          expect(more.length + 1).toBeLessThanOrEqual(burst + (last - first) / everyMs + 0.01);
        },
      ),
    );
  });

  it('has what was used without room waited for', () => {
    const rate = new RequestRate({ burst: 2, everyMs: 100 });
    rate.use(10, 0);
    expect(letIn(rate, [0, 800, 899, 900, 999, 1_000])).toEqual([900, 1_000]);
  });

  it('without a limit always has room', () => {
    const rate = new RequestRate(undefined);
    rate.use(1e9, 0);
    expect([rate.hasRoom(0), rate.isPaid(0)]).toEqual([true, true]);
  });

  it('that others have used too has that waited for, with what was used here since it was asked', () => {
    const rate = new RequestRate({ burst: 5, everyMs: 100 });
    rate.use(1, 0);
    expect(rate.takeUnshared()).toBe(100);
    rate.use(1, 10);
    rate.settle(700, 5); // 100 of it from here
    expect(letIn(rate, [10, 404, 406])).toEqual([406]);
    expect(rate.takeUnshared()).toBe(200);
    rate.settle(0, 410); // the store has lost its data
    expect([rate.hasRoom(410), rate.hasRoom(506), rate.isPaid(904), rate.isPaid(906)]).toEqual([
      false,
      true,
      false,
      true,
    ]);
  });
});
