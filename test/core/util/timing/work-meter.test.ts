import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { scanMember } from '../../../../src/core/protocol/json.ts';
import { boundedWalks, hasRoomFor, inOwnTurns, shareOfTurn } from '../../../../src/core/util/timing/work-meter.ts';
import { cpuMsOf } from '../../../support/cpu-time.ts';

it('[S-05] [S-06] does large works one step a turn, in turns, with turns for others between the steps', async () => {
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
  const names = ['first', 'second', 'third'];
  expect(seen.filter((name) => name !== 'others')).toEqual([
    ...names.map((name) => `${name} 1`),
    ...names.flatMap((name) => [`${name} 2`, `${name} done`]),
  ]);
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

it('[S-05] [P8] lets small works of several readers use one share of a turn, whoever does them', async () => {
  await nextTurn();
  const units = shareOfTurn / 8;
  let count = 0;
  while (hasRoomFor(units)) count += 1;
  expect(count).toBe(7);
  expect(hasRoomFor(0)).toBe(true);
  await nextTurn();
  expect(hasRoomFor(units)).toBe(true);
});

it('[P8] does small works together, and a large one between them a step at a time', async () => {
  const seen: string[] = [];
  let steps = 0;
  const large = inOwnTurns(() => seen.push('large') > 0 && ++steps === 2);
  const small = Array.from({ length: 8 }, (_, n) => inOwnTurns(() => seen.push(`${n}`) > 0, shareOfTurn / 4));
  const turns: string[] = [];
  for (let turn = 0; turn < 40; turn++) {
    await nextTurn();
    const texts = seen.splice(0).join(' ');
    if (texts !== '') turns.push(texts);
  }
  await Promise.all([large, ...small]);
  expect(turns).toEqual(['large', '0 1 2 3', '4 5 6 7', 'large']);
});

it('[P8] begins further large works when earlier ones are done, and small ones at once', async () => {
  const begun = new Set<number>();
  const done: number[] = [];
  const works = Array.from({ length: 6 }, (_, n) => {
    let steps = 0;
    return inOwnTurns(() => begun.add(n).size > 0 && ++steps === 3).then(() => done.push(n));
  });
  const small = inOwnTurns(() => begun.size < 6, 1);
  await small;
  await works[0];
  expect([begun.size < 6, done]).toEqual([true, [0]]);
  await Promise.all(works);
  expect(done).toEqual([0, 1, 2, 3, 4, 5]);
});

it('[G-06] [P8] ends a walk over millions of values when the work of a turn is used up, and not at the end of the text', () => {
  const text = Buffer.from(`{"a":[${'0,'.repeat(2_600_000)}0]}`);
  const bounded: number[] = [];
  const whole: number[] = [];
  for (let run = 0; run < 4; run += 1) {
    bounded.push(cpuMsOf(() => expect(boundedWalks(() => scanMember(text, 'b'))).toBe('too_much_work')));
    whole.push(cpuMsOf(() => expect(scanMember(text, 'b')).toBe('absent')));
  }
  expect(Math.min(...bounded)).toBeLessThan(0.85 * Math.min(...whole)); // it reads half of the text
});
