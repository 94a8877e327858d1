import { expect, it } from 'vitest';
import weights from './fault-weights.json' with { type: 'json' };
import { faultKinds } from './ledger.ts';
import { createPlan, planText } from './plan.ts';

const options = { seed: 7, minutes: 60, gaps: 1, faults: faultKinds, redis: undefined } as const;
const textOf = (changed: object): string => planText({ ...options, ...changed } as never);
const roundsOf = (changed: object, count: number) => {
  const plan = createPlan({ ...options, ...changed });
  return Array.from({ length: count }, () => plan.next().faults).flat();
};

it('one seed names the whole plan', () => {
  expect(textOf({})).toBe(textOf({}));
  expect(textOf({ seed: 8 })).not.toBe(textOf({}));
  expect(textOf({}).split('\n').length).toBeGreaterThan(100);
});

it('each kind comes, about as often as its weight says', () => {
  const planned = roundsOf({ redis: 'sentinel', seed: 2 }, 2_000);
  const all = Object.values(weights).reduce((sum, weight) => sum + weight, 0);
  for (const [kind, weight] of Object.entries(weights)) {
    const share = planned.filter((fault) => fault.kind === kind).length / planned.length;
    expect(share, kind).toBeGreaterThan((weight / all) * 0.5);
    expect(share, kind).toBeLessThan((weight / all) * 1.5);
  }
});

it('a run has only the kinds that were asked for, and a failover only with a sentinel', () => {
  const kinds = ['kill', 'redis failover'] as const;
  const kindsIn = (redis: 'single' | 'sentinel') =>
    [...new Set(roundsOf({ faults: kinds, redis }, 20).map(({ kind }) => kind))].sort();
  expect(kindsIn('single')).toEqual(['kill']);
  expect(kindsIn('sentinel')).toEqual([...kinds]);
  expect(createPlan({ ...options, redis: 'sentinel' }).hasSentinel).toBe(true);
});

it('parts instances from each other in one way and in both, one and both others', () => {
  const whats = roundsOf({ faults: ['link partition', 'link one way'] }, 100).map(({ what }) => what);
  for (const way of ['in both ways', 'as it asks', 'as it is asked'])
    for (const peers of [/from \d, /, /from \d and \d, /])
      expect(whats.filter((what) => what.includes(`${way},`) && peers.test(what))).not.toEqual([]);
});
