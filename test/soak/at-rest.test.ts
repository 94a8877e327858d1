import { expect, it } from 'vitest';
import { moreThan, openedSessions, tooManyExpiring } from './at-rest.ts';
import { expiringKeys, isLasting, kindOf, neededKeys, type Sample } from './samples.ts';

const used = { pid: 1, rssBytes: 1, heapBytes: 1, externalBytes: 1, children: 2, sessions: 0, calls: 0 };
const sampleOf = (descriptors: number, keys: Readonly<Record<string, number>> = {}): Sample => ({
  atMs: 0,
  gateways: [{ ...used, descriptors }],
  redis: { usedBytes: 1, keys: new Map(Object.entries(keys)), withoutTtl: new Map() },
  orphans: [],
});

it('finds descriptors beyond those that a used instance has, but for three', () => {
  expect(moreThan(sampleOf(38), sampleOf(41))).toEqual([]);
  expect(moreThan(sampleOf(38), sampleOf(42))).toEqual(['instance 0 has 42 descriptors, 38 at first']);
});

const hour = 3_600_000;
const name = 'a'.repeat(43);

it('tells what nobody needs any more from what somebody needs', () => {
  expect(kindOf(`gangway:session:{${name}}:record`, hour - 100_000)).toBe('session:record');
  expect(kindOf(`gangway:session:{${name}}:record`, hour - 121_000)).toBe('session:record:left');
  expect(kindOf(`gangway:session:{${name}}:record:ended`, hour)).toBe('session:record:ended');
  expect(kindOf(`gangway:owner:${name}`, hour / 2)).toBe('owner:left');
  // These may not be left: a log lives for two minutes, and without a TTL nothing expires.
  expect(kindOf(`gangway:session:{${name}}:log`, 1_000)).toBe('session:log');
  expect(kindOf(`gangway:session:{${name}}:record`, -1)).toBe('session:record');
  expect(['session:record', 'session:record:ended', 'owner:left'].every(isLasting)).toBe(true);
  expect(['session:log', 'instance:lease'].some(isLasting)).toBe(false);
});

it('counts what waits for its end apart, and finds more of it than sessions explain', () => {
  const keys = { 'session:record': 40, 'session:record:ended': 240, 'owner:left': 10, 'instance:lease:dead': 5 };
  const sample = sampleOf(38, keys);
  expect([neededKeys(sample), expiringKeys(sample)]).toEqual([40, 250]);
  const counts = new Map([
    [
      'short sessions: open',
      new Map([
        ['answered', 80],
        ['broken', 2],
      ]),
    ],
    ['short sessions: call', new Map([['answered', 1_000]])],
    ['clients that disconnect', new Map([['answered', 6]])],
  ]);
  const opened = openedSessions({ counts }, 12);
  expect(opened).toBe(100);
  expect(tooManyExpiring(sample, opened)).toEqual([]);
  expect(tooManyExpiring(sample, opened - 1)).toHaveLength(1);
});
