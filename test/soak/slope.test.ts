import { expect, it } from 'vitest';
import { lowestOf, type Point, slopeOf, surelyExceeds } from './slope.ts';

const minute = 60_000;

it('fits a line', () => {
  const points = [0, 1, 2, 3, 4].map((at) => [at * minute, 10 + 2 * at] as const);
  expect(slopeOf(points)).toMatchObject({ perHour: 120, mean: 14, points: 5 });
  expect(slopeOf(points).errorPerHour).toBeCloseTo(0);
  expect(slopeOf([[0, 5]]).perHour).toBe(0);
});

it('is sure of nothing that two points say', () => {
  expect(surelyExceeds(slopeOf([[0, 5]]), 0)).toBe(false);
  const two = [
    [0, 5],
    [minute, 500],
  ] as const;
  expect(surelyExceeds(slopeOf(two), 0)).toBe(false);
});

it('takes the lowest value of each window', () => {
  const points = [1, 4, 6, 9].map((at) => [at * minute, 100 - at] as const);
  expect(lowestOf(points, 5 * minute)).toEqual([
    [2.5 * minute, 96],
    [7.5 * minute, 91],
  ]);
});

/** Memory in MiB, every 10 s: it rises until it is freed, and some of it may leak. The noise is the same in each run. */
function memory(minutes: number, saw: { everyMinutes: number; height: number; phase: number }, leakPerHour: number) {
  const { everyMinutes, height, phase } = saw;
  return Array.from({ length: minutes * 6 }, (_, index): Point => {
    const at = index / 6;
    const noise = 3 * Math.sin(index * index);
    return [at * minute, 180 + height * ((at / everyMinutes + phase) % 1) + (leakPerHour * at) / 60 + noise];
  });
}

const grows = (points: readonly Point[], maxPerHour: number): boolean =>
  surelyExceeds(slopeOf(lowestOf(points, 5 * minute)), maxPerHour);

const phases = Array.from({ length: 20 }, (_, index) => index / 20);

it('finds a leak below garbage that is collected within minutes, as in a heap, in half an hour', () => {
  const heap = (phase: number, leak: number): readonly Point[] =>
    memory(30, { everyMinutes: 0.7, height: 50, phase }, leak);
  for (const phase of phases) {
    expect(grows(heap(phase, 0), 4), `a heap without a leak, ${phase}`).toBe(false);
    expect(grows(heap(phase, 35), 4), `35 MiB an hour, ${phase}`).toBe(true);
  }
});

it('takes memory that rises and falls within an hour for no leak, and finds one below it in four hours', () => {
  const resident = (phase: number, minutes: number, leak: number): readonly Point[] =>
    memory(minutes, { everyMinutes: 60, height: 135, phase }, leak);
  for (const phase of phases) {
    expect(grows(resident(phase, 105, 0), 8), `no leak in 105 minutes, ${phase}`).toBe(false);
    expect(grows(resident(phase, 240, 0), 8), `no leak in 240 minutes, ${phase}`).toBe(false);
    expect(grows(resident(phase, 240, 35), 8), `35 MiB an hour, ${phase}`).toBe(true);
  }
});

it('finds the same leak in less than two hours where memory is level otherwise', () => {
  expect(grows(memory(105, { everyMinutes: 1, height: 20, phase: 0 }, 35), 8)).toBe(true);
  expect(grows(memory(105, { everyMinutes: 1, height: 20, phase: 0 }, 0), 8)).toBe(false);
});
