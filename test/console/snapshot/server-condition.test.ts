import { describe, expect, test } from 'vitest';
import { byTrouble, findCondition, type ServerCondition } from '../../../src/console/snapshot/server-condition.ts';

const quiet = { exits: 0, lastExit: undefined, noise: 0, since: undefined, noiseLines: [], failingSince: undefined };
const noCalls = { calls: 0, failures: 0 };

describe('the condition of a server', () => {
  test.each<[string, Parameters<typeof findCondition>, ServerCondition['state'], number]>([
    ['it was never used', ['unknown', noCalls, quiet], 'unused', 0],
    ['it was used without a probe', ['unknown', { calls: 1, failures: 0 }, quiet], 'up', 0],
    ['it started', ['up', noCalls, quiet], 'up', 0],
    ['a few of many calls fail', ['up', { calls: 100, failures: 9 }, quiet], 'up', 0],
    ['two calls fail', ['up', { calls: 2, failures: 2 }, quiet], 'up', 0],
    ['a tenth of the calls fails', ['up', { calls: 100, failures: 10 }, quiet], 'degraded', 1],
    ['it exits', ['up', noCalls, { ...quiet, exits: 1 }], 'degraded', 1],
    ['it writes noise', ['up', noCalls, { ...quiet, noise: 2 }], 'degraded', 1],
    ['everything at once', ['up', { calls: 3, failures: 3 }, { ...quiet, exits: 4, noise: 2 }], 'degraded', 3],
    ['it does not start', ['down', { calls: 3, failures: 3 }, { ...quiet, exits: 4 }], 'down', 0],
  ])('%s', (_, parameters, state, reasons) => {
    const condition = findCondition(...parameters);
    expect([condition.state, condition.reasons.length]).toEqual([state, reasons]);
  });
});

test('a reason names the tool that fails, and why the last process was lost', () => {
  const failingTool = { name: 'send', failures: 12 };
  expect(findCondition('up', { calls: 40, failures: 12 }, { ...quiet, failingTool }).reasons).toEqual([
    '12 of 40 calls failed in the last 2 minutes (30 %), most of send.',
  ]);
  expect(findCondition('up', noCalls, { ...quiet, exits: 2, lastExit: 'It exited with code 70.' }).reasons).toEqual([
    'Processes or connections were lost in the last 5 minutes: 2. The last: It exited with code 70.',
  ]);
});

test('a reason names the numbers', () => {
  expect(findCondition('up', { calls: 40, failures: 12 }, quiet).reasons).toEqual([
    '12 of 40 calls failed in the last 2 minutes (30 %).',
  ]);
});

test('servers in trouble come first; others keep their order', () => {
  const servers = (['up', 'unused', 'degraded', 'up', 'down'] as const).map((state, index) => ({
    index,
    condition: { state, reasons: [] },
  }));
  expect(byTrouble(servers).map(({ index }) => index)).toEqual([4, 2, 0, 3, 1]);
});

test('trouble begins with the first of its reasons, and failed calls count only while they are trouble', () => {
  const troubled = { ...quiet, exits: 1, since: 2_000, failingSince: 1_000 };
  expect(findCondition('up', { calls: 3, failures: 3 }, troubled).since).toBe(1_000);
  expect(findCondition('up', noCalls, troubled).since).toBe(2_000);
  expect(findCondition('down', { calls: 3, failures: 3 }, troubled).since).toBe(1_000);
  expect(findCondition('up', noCalls, quiet).since).toBeUndefined();
});
