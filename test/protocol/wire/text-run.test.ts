import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runOf } from '../../support/event-runs.ts';

const texts = fc.array(fc.string({ minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 20 });
const sum = (list: readonly Buffer[]): number => list.reduce((bytes, { length }) => bytes + length, 0);

describe('a run of texts', () => {
  it('[P1] has the texts that its parts have, in any memory', () => {
    fc.assert(
      fc.property(texts, fc.nat(20), fc.nat(20), fc.string({ maxLength: 40 }), (all, a, b, around) => {
        const run = runOf(all, around);
        const expected = all.map((text) => Buffer.from(text));
        expect(run.texts()).toEqual(expected);
        const from = Math.min(a, b, all.length - 1);
        const to = Math.min(Math.max(a, b) + 1, all.length);
        for (const part of [run.slice(from, to), run.slice(from, to).detached(), run.detached().slice(from, to)]) {
          expect(part.texts()).toEqual(expected.slice(from, to));
          expect(part.bytes).toBe(sum(expected.slice(from, to)));
          expect(part.longest).toBe(Math.max(...expected.slice(from, to).map(({ length }) => length)));
        }
      }),
    );
  });

  it('[P8] counts the texts of a number of bytes as a loop does', () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: -2, max: 260 }), fc.nat(19), (all, bytes, from) => {
        const run = runOf(all).slice(Math.min(from, all.length - 1));
        const list = run.texts();
        let reaching = 0;
        while (reaching < list.length && sum(list.slice(0, reaching)) < bytes) reaching += 1;
        expect(run.countOfBytes(bytes)).toBe(reaching);
        let within = 0;
        while (within < list.length && sum(list.slice(0, within + 1)) <= bytes) within += 1;
        expect(run.countWithin(bytes)).toBe(within);
      }),
    );
  });

  it('[P8] keeps no more than twice its bytes', () => {
    const around = 'x'.repeat(1_000);
    const run = runOf(['aaaa', 'bbbb', 'cccc'], around);
    expect(run.memory.buffer.byteLength).toBeGreaterThan(2_000);
    expect(run.detached().memory.buffer.byteLength).toBeLessThanOrEqual(2 * (run.bytes + 2));
    expect(run.slice(1, 2).detached().memory.toString()).toBe('bbbb');
    const own = run.detached();
    expect(own.detached()).toBe(own);
  });
});
