import { expect, test } from 'vitest';
import type { CallOutcome, EndedCall } from '../../../src/call/call-events.ts';
import { CallRates, slotCount, slotMs } from '../../../src/console/record/call-rates.ts';

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

function createRates() {
  let now = 1_000_000;
  return { rates: new CallRates(() => now), pass: (ms: number) => (now += ms) };
}

test('calls are counted by server, and are forgotten after two minutes', () => {
  const { rates, pass } = createRates();
  for (let call = 0; call < 3; call += 1) rates.count(ended('files', 10));
  rates.count(ended('mail', 10, { kind: 'error', code: 1 }));
  pass(slotMs);
  rates.count(ended('files', 10, { kind: 'fault', reason: 'server_exited' }));
  expect(rates.recent('files')).toMatchObject({ calls: 4, failures: 1, callsPerSecond: 3 / 5 });
  expect(rates.recent('mail')).toMatchObject({ calls: 1, failures: 1 });
  expect(rates.recent()).toMatchObject({ calls: 5, failures: 2, callsPerSecond: 4 / 5 });
  pass((slotCount - 1) * slotMs);
  expect(rates.recent('files')).toMatchObject({ calls: 1, failures: 1, callsPerSecond: 0 });
  pass(slotMs);
  expect(rates.recent()).toEqual({ calls: 0, failures: 0, callsPerSecond: 0, p50Ms: null, p95Ms: null, p99Ms: null });
});

test('a response time is the bound that so many in 100 answers kept to', () => {
  const { rates } = createRates();
  for (let call = 0; call < 95; call += 1) rates.count(ended('files', 3));
  for (let call = 0; call < 5; call += 1) rates.count(ended('files', 700));
  expect(rates.recent('files')).toMatchObject({ p50Ms: 5, p95Ms: 5, p99Ms: 1_000 });
  rates.count(ended('files', 700));
  expect(rates.recent('files').p95Ms).toBe(1_000);
  rates.count(ended('slow', 3_600_000));
  expect(rates.recent('slow').p95Ms).toBe(60_000);
});

test('a response time has no waits for a person or a start, and no call without an answer has one', () => {
  const { rates } = createRates();
  rates.count(ended('files', 30_040, { kind: 'ok' }, { waitedMs: 30_000 }));
  rates.count(ended('files', 5_000, { kind: 'ok' }, { method: 'initialize' }));
  rates.count(ended('files', 5_000, { kind: 'ok' }, { method: 'subscriptions/listen' }));
  rates.count(ended('files', 5_000, { kind: 'left' }));
  rates.count(ended('files', 5_000, { kind: 'fault', reason: 'server_exited' }));
  rates.count(ended('files', 40, { kind: 'tool_error' }));
  rates.count(ended('files', 40, { kind: 'error', code: 1 }));
  expect(rates.recent('files')).toMatchObject({ calls: 7, failures: 3, p50Ms: 50, p99Ms: 50 });
});

test('a server that is no longer configured is forgotten', () => {
  const { rates } = createRates();
  rates.count(ended('files', 10));
  rates.forget('files');
  expect(rates.recent().calls).toBe(0);
});

test('the first seconds of a process have a rate too', () => {
  const rates = new CallRates(() => 0);
  rates.count(ended('files', 10));
  expect(rates.recent()).toMatchObject({ calls: 1, callsPerSecond: 0 });
});
