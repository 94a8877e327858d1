import { describe, expect, test } from 'vitest';
import { findCondition, medianOfOthers, type ServerCondition } from '../src/snapshot/server-condition.ts';
import { SteadyConditions } from '../src/snapshot/steady-conditions.ts';

const quiet = { exits: 0, lastExit: undefined, noise: 0, since: undefined, noiseLines: [], failingSince: undefined };
const noCalls = { calls: 0, failures: 0 };

describe('the condition of a server', () => {
  test.each<[string, Parameters<typeof findCondition>, ServerCondition['state'], number]>([
    ['it was never used', ['unknown', noCalls, quiet], 'unused', 0],
    ['it was used without a probe', ['unknown', { calls: 1, failures: 0 }, quiet], 'up', 0],
    ['it has not answered its first call', ['unknown', { calls: 1, failures: 0, p95Ms: null }, quiet], 'up', 1],
    ['it started', ['up', noCalls, quiet], 'up', 0],
    ['a few of many calls fail', ['up', { calls: 100, failures: 9 }, quiet], 'up', 0],
    ['two calls fail', ['up', { calls: 2, failures: 2 }, quiet], 'up', 0],
    ['a tenth of the calls fails', ['up', { calls: 100, failures: 10 }, quiet], 'degraded', 1],
    ['it exits', ['up', noCalls, { ...quiet, exits: 1 }], 'degraded', 1],
    ['it writes noise', ['up', noCalls, { ...quiet, noise: 2 }], 'degraded', 1],
    ['everything at once', ['up', { calls: 3, failures: 3 }, { ...quiet, exits: 4, noise: 2 }], 'degraded', 3],
    ['its last start failed, and another process runs', ['down', noCalls, { ...quiet, isRunning: true }], 'up', 0],
    ['it takes 2 s', ['up', { calls: 9, failures: 0, p95Ms: 2_000 }, { ...quiet, othersP95Ms: 90 }], 'slow', 1],
    ['it takes 2 s alone', ['up', { calls: 9, failures: 0, p95Ms: 2_000 }, quiet], 'slow', 1],
    ['all take 2 s', ['up', { calls: 9, failures: 0, p95Ms: 2_000 }, { ...quiet, othersP95Ms: 1_900 }], 'up', 0],
    ['two calls took 2 s', ['up', { calls: 2, failures: 0, p95Ms: 2_000 }, quiet], 'up', 0],
    ['it does not start', ['down', { calls: 3, failures: 3 }, { ...quiet, exits: 4 }], 'down', 0],
  ])('%s', (_, parameters, state, reasons) => {
    const condition = findCondition(...parameters);
    expect([condition.state, condition.reasons.length]).toEqual([state, reasons]);
  });
});

test('a reason names the tool that fails, and why the last process was lost', () => {
  const failingTool = { name: 'send', failures: 12 };
  expect(findCondition('up', { calls: 40, failures: 12 }, { ...quiet, failingTool }).reasons).toEqual([
    '12 of 40 calls failed in the last 2 min (30 %), most of send.',
  ]);
  const unlisted = { ...quiet, failingTool: { name: 'other', failures: 12 } };
  expect(findCondition('up', { calls: 40, failures: 12 }, unlisted).reasons).toEqual([
    '12 of 40 calls failed in the last 2 min (30 %), most of unlisted tools.',
  ]);
  expect(findCondition('up', noCalls, { ...quiet, exits: 2, lastExit: 'It exited with code 70.' }).reasons).toEqual([
    'Restarted 2 times in 1 min. It exited with code 70.',
  ]);
  const often = { ...quiet, exits: 12, exitSpanMs: 250_000, lastExit: 'It exited with code 70.' };
  expect(findCondition('up', noCalls, often).reasons).toEqual(['Restarted 12 times in 5 min. It exited with code 70.']);
});

test('a server that does not start is down since its calls fail, or since the start', () => {
  expect(findCondition('down', noCalls, { ...quiet, downAt: 70 }).since).toBe(70);
  const failing = { ...quiet, downAt: 70, failingSince: 50 };
  expect(findCondition('down', { calls: 9, failures: 9 }, failing).since).toBe(50);
});

test('a reason names the numbers', () => {
  expect(findCondition('up', { calls: 40, failures: 12 }, quiet).reasons).toEqual([
    '12 of 40 calls failed in the last 2 min (30 %).',
  ]);
});

test('a server is compared with the median of the others that were used', () => {
  expect([medianOfOthers([9, 1, null, 5, 3], 0), medianOfOthers([7, null], 0)]).toEqual([3, undefined]);
});

describe('the shown conditions', () => {
  const condition = (state: ServerCondition['state'], since?: number): ServerCondition => ({
    state,
    reasons: [],
    since,
  });

  test('trouble is shown at once, and ends when it was away for 10 s', () => {
    let now = 0;
    const steady = new SteadyConditions(() => now);
    const show = (state: ServerCondition['state'], since?: number) => steady.show('a', condition(state, since));
    expect(show('unused').state).toBe('unused');
    expect(show('up')).toMatchObject({ state: 'up', since: undefined });
    expect(show('degraded', 5_000)).toMatchObject({ state: 'degraded', since: 5_000 });
    // A process that ends and starts again every few seconds.
    for (const state of ['down', 'degraded', 'down', 'up', 'down', 'degraded'] as const) {
      now += 6_000;
      expect(show(state, 9_000)).toMatchObject({ state: 'degraded', since: 5_000 });
    }
    show('down', 5_000);
    now += 10_000;
    const down = show('down', 5_000);
    expect(down.state).toBe('down');
    expect(down.since).toBeGreaterThan(5_000);
    show('up');
    now += 10_000;
    expect(show('up')).toMatchObject({ state: 'up', since: undefined });
    steady.keep(new Set());
    expect(show('unused').state).toBe('unused');
  });

  test('servers in trouble come first, and change places at most every 10 s', () => {
    let now = 0;
    const steady = new SteadyConditions(() => now);
    const sorted = (...states: ServerCondition['state'][]) =>
      steady
        .sort(states.map((state, name) => ({ name: `${name}`, condition: condition(state) })))
        .map(({ name }) => name);
    expect(sorted('up', 'unused', 'degraded', 'slow', 'down')).toEqual(['4', '2', '3', '0', '1']);
    now += 9_000;
    expect(sorted('down', 'up', 'up', 'up', 'up')).toEqual(['4', '2', '3', '0', '1']);
    now += 1_000;
    expect(sorted('down', 'up', 'up', 'up', 'up')).toEqual(['0', '1', '2', '3', '4']);
    expect(sorted('up', 'down')).toEqual(['1', '0']);
  });
});

test('trouble begins with the first of its reasons, and failed calls count only while they are trouble', () => {
  const troubled = { ...quiet, exits: 1, since: 2_000, failingSince: 1_000 };
  expect(findCondition('up', { calls: 3, failures: 3 }, troubled).since).toBe(1_000);
  expect(findCondition('up', noCalls, troubled).since).toBe(2_000);
  expect(findCondition('down', { calls: 3, failures: 3 }, troubled).since).toBe(1_000);
  expect(findCondition('up', noCalls, quiet).since).toBeUndefined();
});
