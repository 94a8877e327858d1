import { expect, it } from 'vitest';
import { reportInOrder } from '../../../../src/app/commands/check/check-command.ts';

/** Work that ends when it is told to. */
function startWork(items: readonly string[], atOnce: number) {
  const ends = new Map<string, () => void>();
  const told: string[] = [];
  const work = (item: string) => new Promise<string>((resolve) => ends.set(item, () => resolve(item.toUpperCase())));
  const all = reportInOrder(items, atOnce, work, (result) => told.push(result));
  const finish = async (item: string) => {
    ends.get(item)?.();
    await new Promise(setImmediate);
  };
  return { all, told, finish, begun: () => [...ends.keys()] };
}

it('begins so many at once, tells in order, and as soon as it can', async () => {
  const { all, told, finish, begun } = startWork(['a', 'b', 'c', 'd'], 2);
  expect(begun()).toEqual(['a', 'b']);
  await finish('b');
  expect([begun(), told]).toEqual([['a', 'b', 'c'], []]);
  await finish('a');
  expect([begun(), told]).toEqual([
    ['a', 'b', 'c', 'd'],
    ['A', 'B'],
  ]);
  await finish('d');
  expect(told).toEqual(['A', 'B']);
  await finish('c');
  await all;
  expect(told).toEqual(['A', 'B', 'C', 'D']);
});

it('rejects as the work does, and has nothing to do with nothing', async () => {
  await expect(reportInOrder([1], 4, () => Promise.reject(new Error('no')), expect.fail)).rejects.toThrow('no');
  await reportInOrder([], 4, expect.fail, expect.fail);
});
