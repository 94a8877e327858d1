import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { settlesWithin, within } from '../../../../src/core/util/timing/within.ts';

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
});

const never = new Promise<string>(() => undefined);
const after = <T>(ms: number, value: T): Promise<T> => new Promise((resolve) => setTimeout(resolve, ms, value));

it('settles with a promise that settles in time, and leaves no timer behind', async () => {
  const failure = new Error('failed');
  await expect(within(Promise.resolve('done'), 100, () => 'late')).resolves.toBe('done');
  await expect(within(Promise.reject(failure), 100, () => 'late')).rejects.toBe(failure);
  expect(vi.getTimerCount()).toBe(0);
});

it('settles with the outcome for a late promise', async () => {
  const failure = new Error('late');
  const resolved = within(never, 100, () => 'late');
  const rejected = expect(
    within(never, 100, () => {
      throw failure;
    }),
  ).rejects.toBe(failure);
  await vi.advanceTimersByTimeAsync(100);
  await expect(resolved).resolves.toBe('late');
  await rejected;
});

it('ignores a promise that rejects when its time is over', async () => {
  const late = within(
    after(200, undefined).then(() => Promise.reject(new Error('too late'))),
    100,
    () => 'late',
  );
  await vi.advanceTimersByTimeAsync(300);
  await expect(late).resolves.toBe('late');
});

it('reports whether a promise resolves in time', async () => {
  const [early, late] = [settlesWithin(after(50, 'done'), 100), settlesWithin(after(150, 'done'), 100)];
  await vi.advanceTimersByTimeAsync(200);
  expect(await Promise.all([early, late])).toEqual([true, false]);
  await expect(settlesWithin(Promise.reject(new Error('failed')), 100)).rejects.toThrow('failed');
});
