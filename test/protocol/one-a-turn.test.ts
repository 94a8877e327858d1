import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { isLarge, readInOwnTurn } from '../../src/protocol/one-a-turn.ts';

it('[S-05] [S-06] reads large texts one after the other, in order, with turns for others between them', async () => {
  const seen: string[] = [];
  for (const name of ['first', 'second', 'third']) readInOwnTurn(() => seen.push(name));
  expect(seen).toEqual([]);
  for (let turn = 0; turn < 10; turn++) {
    await nextTurn();
    seen.push('others');
  }
  const between = (from: string, to: string): number => seen.indexOf(to) - seen.indexOf(from) - 1;
  expect(seen.filter((name) => name !== 'others')).toEqual(['first', 'second', 'third']);
  expect([between('first', 'second'), between('second', 'third')]).toEqual([3, 3]);
});

it('takes only what is worth a turn for large', () => {
  expect(isLarge(4_096)).toBe(false);
  expect(isLarge(4 * 1024 * 1024)).toBe(true);
});
