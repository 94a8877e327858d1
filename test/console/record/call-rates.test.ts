import { expect, test } from 'vitest';
import type { CallOutcome, EndedCall } from '../../../src/call/call-events.ts';
import { CallRates, slotCount } from '../../../src/console/record/call-rates.ts';

const ended = (
  server: string,
  durationMs: number,
  outcome: CallOutcome = { kind: 'ok' },
  { waitedMs = 0, method = 'tools/call' } = {},
): EndedCall => ({
  type: 'call-ended',
  origin: { server, era: 'legacy', principal: undefined },
  ...{ method, name: undefined, outcome, durationMs, serverMs: durationMs - waitedMs, waitedMs },
  ...{ bytesIn: 0, bytesOut: 0, requestId: undefined },
});

function rates() {
  let now = 1_000_000;
  return { rates: new CallRates(() => now), pass: (ms: number) => (now += ms) };
}

test('calls are counted by second and server, and leave the plot after two minutes', () => {
  const { rates: of, pass } = rates();
  for (let call = 0; call < 3; call += 1) of.count(ended('files', 10));
  of.count(ended('mail', 10, { kind: 'error', code: 1 }));
  pass(2_000);
  of.count(ended('files', 10, { kind: 'fault', reason: 'server_exited' }));
  expect(of.plots('files').calls).toHaveLength(slotCount);
  expect(of.plots('files').calls.slice(-3)).toEqual([3, 0, 1]);
  expect(of.plots('files').errors.slice(-3)).toEqual([0, 0, 1]);
  expect(of.plots('mail').errors.slice(-3)).toEqual([1, 0, 0]);
  pass((slotCount - 1) * 1_000);
  expect(of.plots('files').calls[0]).toBe(1);
  pass(1_000);
  expect(of.plots('files').calls).toEqual(new Array(slotCount).fill(0));
});

test('times to answer are said as what so many in 100 answers kept to', () => {
  const { rates: of } = rates();
  for (let call = 0; call < 95; call += 1) of.count(ended('files', 3));
  for (let call = 0; call < 5; call += 1) of.count(ended('files', 700));
  const { p50, p95 } = of.plots('files');
  expect([p50.at(-1), p95.at(-1), p50.at(-2)]).toEqual([5, 5, null]);
  of.count(ended('files', 700));
  expect(of.plots('files').p95.at(-1)).toBe(1_000);
  of.count(ended('slow', 3_600_000));
  expect(of.plots('slow').p95.at(-1)).toBe(60_000);
});

test('times to answer are those of answers: no waits for a person or a start, no calls without an answer, no subscriptions', () => {
  const { rates: of } = rates();
  of.count(ended('files', 60_040, { kind: 'ok' }, { waitedMs: 60_000 }));
  of.count(ended('files', 40, { kind: 'tool_error' }));
  of.count(ended('files', 40, { kind: 'error', code: 1 }));
  of.count(ended('files', 9_000, { kind: 'left' }));
  of.count(ended('files', 9_000, { kind: 'fault', reason: 'request_timeout' }));
  of.count(ended('files', 9_000, { kind: 'ok' }, { method: 'initialize' }));
  of.count(ended('files', 9_000, { kind: 'ok' }, { method: 'subscriptions/listen' }));
  const { p50, p95, calls, errors } = of.plots('files');
  expect([p50.at(-1), p95.at(-1), calls.at(-1), errors.at(-1)]).toEqual([50, 50, 7, 3]);
  expect(of.totals([of.plots('files')]).p95Ms).toBe(50);
});

test('totals are of the last seconds that are over, and times to answer of all that plots show', () => {
  const { rates: of, pass } = rates();
  for (let second = 0; second < 10; second += 1) {
    for (let call = 0; call <= second; call += 1) of.count(ended('files', 30));
    of.count(ended('mail', 30, { kind: 'error', code: 1 }));
    pass(1_000);
  }
  const totals = of.totals([of.plots('files'), of.plots('mail')]);
  expect(totals).toEqual({ callsPerSecond: 8 + 1, errorsPerSecond: 1, p50Ms: 50, p95Ms: 50, p99Ms: 50 });
  pass(60_000);
  expect(of.totals([of.plots('files')])).toEqual({
    callsPerSecond: 0,
    errorsPerSecond: 0,
    p50Ms: 50,
    p95Ms: 50,
    p99Ms: 50,
  });
  of.count(ended('mail', 700));
  expect(of.totals([of.plots('files')]).p95Ms).toBe(50);
  pass(60_000);
  expect(of.totals([of.plots('files')]).p95Ms).toBe(1_000);
  pass(60_000);
  expect(of.totals([of.plots('files')]).p95Ms).toBeNull();
});
