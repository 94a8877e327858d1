import { expect, it, onTestFinished, vi } from 'vitest';
import { backoff } from '../../../../src/core/util/timing/backoff.ts';

/** Replaces the random number for one test. */
function stubRandom(value: number): void {
  const random = vi.spyOn(Math, 'random').mockReturnValue(value);
  onTestFinished(() => random.mockRestore());
}

it.each([
  ['doubles by default', { firstMs: 250, maxMs: 5_000 }, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]],
  ['grows by a factor', { firstMs: 100, maxMs: 300, factor: 1.5 }, [100, 150, 225, 300]],
])('%s, up to the limit', (_, options, pauses) => {
  const pauseAfter = backoff(options);
  expect(pauses.map((_pause, failures) => pauseAfter(failures))).toEqual(pauses);
});

it('stays at the limit after any number of failures', () => {
  expect(backoff({ firstMs: 1, maxMs: 1_000 })(100_000)).toBe(1_000);
});

it.each([
  [0, 500],
  [0.5, 750],
  [0.999, 999.5],
])('spreads the pause: with the random number %d over its upper half to %d ms', (random, pauseMs) => {
  stubRandom(random);
  expect(backoff({ firstMs: 1_000, maxMs: 1_000, spread: [0.5, 1] })(3)).toBeCloseTo(pauseMs);
});

it('may spread the pause beyond the limit', () => {
  stubRandom(0.5);
  expect(backoff({ firstMs: 1_000, maxMs: 1_000, spread: [1, 1.25] })(0)).toBe(1_125);
});
