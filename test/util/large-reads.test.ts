import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { inOwnTurns, isLarge } from '../../src/util/large-reads.ts';

it('[S-05] [S-06] does large work one step a turn, in order, with turns for others between the steps', async () => {
  const seen: string[] = [];
  const work = ['first', 'second', 'third'].map((name) => {
    let steps = 0;
    const step = (): boolean => {
      steps += 1;
      seen.push(`${name} ${steps}`);
      return steps === 2;
    };
    return inOwnTurns(step).then(() => seen.push(`${name} done`));
  });
  expect(seen).toEqual([]);
  let areDone = false;
  void Promise.all(work).then(() => (areDone = true));
  for (let turn = 0; turn < 100 && !areDone; turn++) {
    await nextTurn();
    seen.push('others');
  }
  expect(seen.filter((name) => name !== 'others')).toEqual(
    ['first', 'second', 'third'].flatMap((name) => [`${name} 1`, `${name} 2`, `${name} done`]),
  );
  const steps = seen.flatMap((name, at) => (/\d/.test(name) ? [at] : []));
  for (const [nth, at] of steps.slice(1).entries())
    expect(seen.slice(steps[nth], at).filter((name) => name === 'others')).toHaveLength(3);
});

it('rejects with what a step throws, and goes on with other work', async () => {
  const failed = inOwnTurns(() => {
    throw new Error('a fault');
  });
  let steps = 0;
  const others = inOwnTurns(() => ++steps === 2);
  await expect(failed).rejects.toThrow('a fault');
  await others;
  expect(steps).toBe(2);
});

it('takes only what is worth a turn for large', () => {
  expect(isLarge(4_096)).toBe(false);
  expect(isLarge(4 * 1024 * 1024)).toBe(true);
});
