import { expect, onTestFinished, test, vi } from 'vitest';
import type { CallOutcome, EndedCall } from '../src/host.ts';
import { CallCounter } from '../src/record/calls/call-counter.ts';
import { CallRates, slotCount, slotMs } from '../src/record/calls/call-rates.ts';
import { FailingSpells } from '../src/record/calls/failing-spells.ts';
import { fakeHost } from './fake-host.ts';

const ended = (
  server: string,
  durationMs: number,
  outcome: CallOutcome = { kind: 'ok' },
  { waitedMs = 0, method = 'tools/call' } = {},
): EndedCall => ({
  type: 'call-ended',
  origin: { server, principal: undefined },
  ...{ method, name: undefined, outcome, durationMs, serverMs: durationMs - waitedMs, waitedMs },
  ...{ bytesIn: 0, bytesOut: 0, requestId: undefined },
});

/** Rates whose calls are folded in at once. */
function createRates(start = 1_000_000) {
  let now = start;
  const rates = new CallRates(() => now);
  const counter = new CallCounter(fakeHost);
  const count = (call: EndedCall): void => {
    counter.count(call);
    counter.fold((server, counts) => rates.add(server, counts));
  };
  return { rates, count, counter, pass: (ms: number) => (now += ms) };
}

test('calls are counted by server, and are forgotten after two minutes', () => {
  const { rates, count, pass } = createRates();
  for (let call = 0; call < 3; call += 1) count(ended('files', 10));
  count(ended('mail', 10, { kind: 'error', code: 1 }));
  pass(slotMs);
  count(ended('files', 10, { kind: 'fault', reason: 'server_exited' }));
  expect(rates.recent('files')).toMatchObject({ calls: 4, failures: 1, callsPerSecond: 3 / 5 });
  expect(rates.recent('mail')).toMatchObject({ calls: 1, failures: 1 });
  expect(rates.recent()).toMatchObject({ calls: 5, failures: 2, callsPerSecond: 4 / 5 });
  pass((slotCount - 1) * slotMs);
  expect(rates.recent('files')).toMatchObject({ calls: 1, failures: 1, callsPerSecond: 0 });
  pass(slotMs);
  expect(rates.recent()).toEqual({
    calls: 0,
    failures: 0,
    left: 0,
    callsPerSecond: 0,
    gatewayMs: null,
    p50Ms: null,
    p95Ms: null,
    p99Ms: null,
  });
});

test('a call that has become a task has no response time', () => {
  const { rates, count } = createRates();
  for (let call = 0; call < 3; call += 1) count({ ...ended('files', 5_000), isTask: true });
  expect(rates.recent('files')).toMatchObject({ calls: 3, failures: 0, p95Ms: null, gatewayMs: null });
  count(ended('files', 3));
  expect(rates.recent('files').p95Ms).toBeLessThan(10);
});

test('a response time is known to a few percent, and is never longer than the longest answer', () => {
  const { rates, count } = createRates();
  for (let call = 0; call < 95; call += 1) count(ended('files', 3));
  for (let call = 0; call < 5; call += 1) count(ended('files', 700));
  const { p50Ms, p95Ms, p99Ms } = rates.recent('files');
  expect([p50Ms, p95Ms, p99Ms].map((ms) => Math.round(ms as number))).toEqual([3, 3, 693]);
  for (const ms of [2_000, 2_700, 3_400]) for (let call = 0; call < 10; call += 1) count(ended('search', ms));
  const slow = rates.recent('search');
  expect(Math.abs((slow.p50Ms as number) / 2_700 - 1)).toBeLessThan(0.06);
  expect(slow.p95Ms).toBeGreaterThan(slow.p50Ms as number);
  expect(slow.p95Ms).toBeLessThanOrEqual(3_400);
  // One in a hundred of thirty calls says nothing.
  expect(slow.p99Ms).toBeNull();
  count(ended('hung', 3_600_000));
  expect(rates.recent('hung').p95Ms).toBe(3_600_000);
});

test('a response time has no waits for a person or a start, and no call without an answer has one', () => {
  const { rates, count } = createRates();
  count(ended('files', 30_040, { kind: 'ok' }, { waitedMs: 30_000 }));
  count(ended('files', 5_000, { kind: 'ok' }, { method: 'initialize' }));
  count(ended('files', 5_000, { kind: 'ok' }, { method: 'subscriptions/listen' }));
  count(ended('files', 5_000, { kind: 'left' }));
  count(ended('files', 5_000, { kind: 'fault', reason: 'server_exited' }));
  count(ended('files', 40, { kind: 'tool_error' }));
  count(ended('files', 40, { kind: 'error', code: 1 }));
  expect(rates.recent('files')).toMatchObject({ calls: 7, failures: 3, left: 1, p50Ms: 40, p95Ms: 40 });
});

test('a server that is no longer configured is forgotten', () => {
  const { rates, count } = createRates();
  count(ended('files', 10));
  rates.forget('files');
  expect(rates.recent().calls).toBe(0);
});

test('the first seconds of a process have a rate too', () => {
  const { rates, count } = createRates(0);
  count(ended('files', 10));
  expect(rates.recent()).toMatchObject({ calls: 1, callsPerSecond: 0 });
});

test('calls are passed on once, by server, and a forgotten server is not', () => {
  const { rates, counter } = createRates();
  const fold = (): void => counter.fold((server, counts) => rates.add(server, counts));
  for (let call = 0; call < 3; call += 1) counter.count(ended('files', 10));
  counter.count(ended('mail', 10));
  counter.count(ended('gone', 10));
  counter.forget('gone');
  expect(rates.recent().calls).toBe(0);
  fold();
  fold();
  expect(rates.recent('files').calls).toBe(3);
  expect(rates.recent().calls).toBe(4);
  counter.count(ended('mail', 10));
  fold();
  expect(rates.recent('mail').calls).toBe(2);
});

test('the own time of the gateway is without the server and without waits', () => {
  const { rates, count } = createRates();
  count({ ...ended('files', 100, { kind: 'ok' }, { waitedMs: 50 }), serverMs: 40 });
  count({ ...ended('files', 30), serverMs: 10 });
  count({ ...ended('files', 5_000, { kind: 'fault', reason: 'server_exited' }), serverMs: undefined });
  expect(rates.recent('files').gatewayMs).toBe(15);
});

test('calls fail since the first time that so many failed, until they have not failed for two minutes', () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const spells = new FailingSpells(() => Date.now());
  const failing = { calls: 10, failures: 5 };
  const pass = (ms: number): unknown => vi.setSystemTime(Date.now() + ms);
  spells.record('mail', { calls: 100, failures: 2 });
  expect(spells.since('mail')).toBeUndefined();
  for (const passed of [0, 100_000, 100_000]) {
    pass(passed);
    spells.record('mail', failing);
    expect(spells.since('mail')).toBe(1_000_000);
  }
  pass(slotCount * slotMs);
  spells.record('mail', failing);
  expect(spells.since('mail')).toBe(1_200_000 + slotCount * slotMs);
  spells.forget('mail');
  expect(spells.since('mail')).toBeUndefined();
});
