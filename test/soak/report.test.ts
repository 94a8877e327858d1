import { expect, it } from 'vitest';
import { createLedger } from './ledger.ts';
import { boundsOf, reportOf } from './report.ts';
import type { Sample } from './samples.ts';

const minute = 60_000;
const rss = 64 * 1024 * 1024;
const sampleAt = (atMs: number, keys: Readonly<Record<string, number>> = {}, rssBytes = rss): Sample => ({
  atMs,
  gateways: [
    { pid: 1, rssBytes, heapBytes: rss, externalBytes: rss, descriptors: 30, children: 1, sessions: 0, calls: 0 },
  ],
  redis: { usedBytes: 1, keys: new Map(Object.entries(keys)), withoutTtl: new Map() },
  orphans: [],
});

/** The report of a run with samples every minute. */
function reportAfter(minutes: number, { image = 'soak.svg', ledger = createLedger() } = {}): string {
  const samples = Array.from({ length: minutes }, (_, at) => sampleAt(at * minute));
  const base = sampleAt(0);
  const times = { minutes, begun: new Date(0), talkedMs: minutes * minute, totalMs: (minutes + 3) * minute };
  const run = {
    seed: 1,
    load: 1,
    ...times,
    rounds: [],
    hasSentinel: false,
    clients: 12,
    gaps: 1,
    base,
    end: base,
    opened: 7,
    lines: new Map(),
  };
  return reportOf({ ...run, ledger, bounds: boundsOf(samples) }, image);
}

it('tells traffic and closing checks apart', () => {
  expect(reportAfter(2)).toContain(
    'The run had 2.0 minutes of mixed traffic with random faults, and 3.0 minutes of closing checks.',
  );
});

it('says so where a run was too short for a line', () => {
  expect(reportAfter(15)).toContain(
    'The run was too short to measure growth: it was not longer than these 15 minutes.',
  );
  expect(reportAfter(60)).toContain('| resident memory of instance 0 | 64.0 MiB | 0.00 MiB | 0.00 MiB | 8 MiB |');
});

it('shows the chart that is written beside it', () => {
  expect(reportAfter(2, { image: 'mine.svg' })).toContain('](mine.svg)');
});

it('tells what only the busy machine explains', () => {
  const ledger = createLedger();
  const now = performance.now();
  ledger.noteBusy('a gateway stood still', now, now + 600);
  ledger.note({ kind: 'call', startedAt: now, endedAt: now + 20, outcome: 'store_unavailable', ownMs: 1_000 });
  ledger.judge(true);
  expect(reportAfter(2, { ledger })).toContain('1 call, store_unavailable.');
  expect(reportAfter(2)).toContain('The busy machine alone explains none of the outcomes.');
});

it('has a dash, and no time, where nothing came to an end without a fault near', async () => {
  const ledger = createLedger();
  const now = performance.now();
  const note = (kind: string): void =>
    ledger.note({ kind, startedAt: now, endedAt: now + 20, outcome: 'answered', ownMs: 1_000 });
  note('calm');
  ledger.judge(true);
  await ledger.during('stall', 'a stall', async () => note('near'));
  ledger.judge(true);
  const report = reportAfter(2, { ledger });
  expect(report).toContain('| calm | 1 answered | 20 ms | 20 ms |');
  expect(report).toContain('| near | 1 answered | – | 20 ms |');
});

/** What grows too much in a run with such samples every minute. */
const growing = (minutes: number, sampleOf: (minute: number) => Sample): readonly string[] =>
  boundsOf(Array.from({ length: minutes }, (_, at) => sampleOf(at)))
    .filter(({ exceeds }) => exceeds)
    .map(({ name }) => name);

it('takes keys that expire for no growth, and the same number of keys that somebody needs for one', () => {
  expect(growing(45, (at) => sampleAt(at * minute, { 'session:record:ended': 30 * at, 'owner:left': at }))).toEqual([]);
  expect(growing(45, (at) => sampleAt(at * minute, { 'session:record': 30 * at }))).toEqual(['needed keys in Redis']);
});

it('tells how many keys wait for their end', () => {
  expect(reportAfter(2)).toContain('0 were there at the end, of 7 sessions and streams that clients had opened.');
});

it('finds resident memory that grows in a long run, and leaves it to heap and buffers in a short one', () => {
  const leaking = (at: number): Sample => sampleAt(at * minute, {}, rss * (1 + at / 60));
  expect(growing(60, leaking)).toEqual([]);
  expect(growing(120, leaking)).toEqual(['resident memory of instance 0']);
  const leakingHeap = (at: number): Sample => {
    const { gateways, ...more } = sampleAt(at * minute);
    return { ...more, gateways: gateways.map((used) => used && { ...used, heapBytes: rss * (1 + at / 60) }) };
  };
  expect(growing(45, leakingHeap)).toEqual(['JavaScript heap of instance 0']);
});
