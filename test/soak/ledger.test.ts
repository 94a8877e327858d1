import { expect, it, onTestFinished, vi } from 'vitest';
import { maxTakeovers } from '../../src/core/store/takeover-limit.ts';
import { busy, createLedger, type FaultKind } from './ledger.ts';
import { loadMs, noticedMs } from './stage.ts';

vi.spyOn(process.stdout, 'write').mockReturnValue(true);

/** A ledger, and what it finds of a deed with this outcome so long after a fault of a second. */
function createFixture() {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const ledger = createLedger();
  const pass = (ms: number): void => void vi.advanceTimersByTime(ms);
  return {
    ledger,
    pass,
    fault: (kind: FaultKind) => ledger.during(kind, kind, async () => pass(1_000)),
    judge(outcome: string, { tookMs = 10, isDropping = false } = {}): string[] {
      const before = ledger.failures.length;
      const startedAt = performance.now();
      pass(tookMs);
      ledger.note({ kind: 'call', startedAt, endedAt: performance.now(), outcome, ownMs: 100, isDropping });
      ledger.judge(true);
      return ledger.failures.slice(before).map(({ what }) => what);
    },
  };
}

it('takes an error for a failure unless a fault explains it, by its kind and its time', async () => {
  const { judge, fault, pass } = createFixture();
  expect(judge('answered')).toEqual([]);
  expect(judge('broken')).toEqual([expect.stringContaining('broken; near: no fault')]);
  expect(judge('broken', { isDropping: true })).toEqual([]);
  await fault('kill');
  expect(judge('outcome_unknown')).toEqual([]);
  expect(judge('unknown_session')).toEqual([expect.stringContaining('unknown_session; near: kill')]);
  expect(judge('store_unavailable')).toHaveLength(1);
  pass(noticedMs + loadMs);
  expect(judge('outcome_unknown')).toEqual([expect.stringContaining('near: no fault')]);
});

it('lets a round of input wait while the store is away', async () => {
  const { judge, fault } = createFixture();
  expect(judge('input_not_taken')).toEqual([expect.stringContaining('near: no fault')]);
  await fault('redis pause');
  expect(judge('input_not_taken')).toEqual([]);
});

it('excuses a stream that could not be opened while the store is away, but none that has broken then', async () => {
  const { judge, fault } = createFixture();
  for (const kind of ['redis pause', 'redis full', 'redis disk full'] as const) {
    await fault(kind);
    expect(judge('store_unavailable')).toEqual([]);
    expect(judge('broken')).toEqual([expect.stringContaining('broken; near: redis pause')]);
  }
});

it('explains a broken stream by a kill at that time, and the limit of a client by nothing', async () => {
  const { judge, fault } = createFixture();
  expect(judge('broken')).toHaveLength(1);
  await fault('kill');
  expect(judge('broken')).toEqual([]);
  expect(judge('Request timed out')).toHaveLength(1);
});

it('takes what lasts too long for a failure, and allows as long as the faults that it met', async () => {
  const { judge, fault } = createFixture();
  expect(judge('answered', { tookMs: 100 + loadMs })).toEqual([]);
  expect(judge('answered', { tookMs: 101 + loadMs })).toEqual([expect.stringContaining('more than')]);
  await fault('redis pause');
  expect(judge('answered', { tookMs: loadMs + noticedMs })).toEqual([]);
  expect(judge('answered', { tookMs: 1_000_000 })).toHaveLength(1);
});

it('counts what several probes see of a busy machine once, and says when a session may have been ended', async () => {
  const { ledger, fault, pass } = createFixture();
  for (let probe = 0; probe < 3; probe++) {
    const since = performance.now();
    pass(1_000);
    ledger.noteBusy('late', since);
  }
  expect(ledger.faults.map(({ kind }) => kind)).toEqual([busy]);
  await fault('kill');
  expect(ledger.mayHaveEnded(0)).toBe(false);
  for (let more = 0; more < maxTakeovers; more += 1) await fault('freeze');
  expect(ledger.mayHaveEnded(0)).toBe(true);
});

it('excuses what only a busy machine explains if it was measured, and counts it', async () => {
  const { ledger, judge, fault, pass } = createFixture();
  await fault('kill');
  expect(judge('owner_unreachable')).toHaveLength(1);
  const since = performance.now();
  pass(600);
  ledger.noteBusy('a gateway stood still', since, performance.now());
  expect(judge('owner_unreachable')).toEqual([]);
  // A kill explains this, busy or not.
  expect(judge('outcome_unknown')).toEqual([]);
  expect([...ledger.excused]).toEqual([['call, owner_unreachable', 1]]);
});

it('excuses no answer that is wrong, nor what comes long after the machine was busy', async () => {
  const { ledger, judge, pass } = createFixture();
  ledger.noteBusy('a gateway stood still', performance.now(), performance.now() + 600);
  expect(judge('wrong answer: {}')).toHaveLength(1);
  pass(600 + noticedMs + loadMs + 1);
  expect(judge('store_unavailable')).toHaveLength(1);
  expect(ledger.excused.size).toBe(0);
});

it('knows that a sentinel may lose what Redis has confirmed', async () => {
  const { ledger } = createFixture();
  const withSentinel = createLedger({ hasSentinel: true });
  for (const each of [ledger, withSentinel]) await each.during('redis pause', 'pause', async () => undefined);
  expect([ledger, withSentinel].map((each) => each.mayHaveLostData(0))).toEqual([false, true]);
});

it('notes a failover that nobody has planned, and no other', async () => {
  const { ledger, pass } = createFixture();
  await ledger.during('redis failover', 'planned', async () => pass(1_000));
  ledger.noteFailover(performance.now() - 500);
  expect(ledger.faults).toHaveLength(1);
  pass(noticedMs + loadMs + 2_000);
  ledger.noteFailover(performance.now() - 500);
  expect(ledger.faults.map(({ kind }) => kind)).toEqual(['redis failover', 'redis failover behind']);
});
