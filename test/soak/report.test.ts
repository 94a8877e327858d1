import { expect, it } from 'vitest';
import { createLedger } from './ledger.ts';
import { boundsOf, reportOf } from './report.ts';
import type { Sample } from './samples.ts';

const minute = 60_000;
const rss = 64 * 1024 * 1024;
const sampleAt = (atMs: number): Sample => ({
  atMs,
  gateways: [{ pid: 1, rssBytes: rss, heapBytes: rss, descriptors: 30, children: 1, sessions: 0, calls: 0 }],
  redis: undefined,
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
  expect(reportAfter(60)).toContain('| resident memory of instance 0 | 64.0 MiB | 0.00 MiB | 8 MiB |');
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
