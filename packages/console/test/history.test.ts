import { expect, test } from 'vitest';
import type { EndedCall } from '../src/host.ts';
import { CallCounter } from '../src/record/calls/call-counter.ts';
import { CallRates } from '../src/record/calls/call-rates.ts';
import { History, historyRanges } from '../src/record/calls/history.ts';
import { fakeHost } from './fake-host.ts';

const ended = (server: string, kind: 'ok' | 'tool_error' = 'ok'): EndedCall => ({
  type: 'call-ended',
  origin: { server, principal: undefined },
  ...{ method: 'tools/call', name: undefined, outcome: { kind }, durationMs: 3, serverMs: 3, waitedMs: 0 },
  ...{ bytesIn: 0, bytesOut: 0, requestId: undefined },
});

function createHistory() {
  let now = 0;
  let sessions = 0;
  const rates = new CallRates(() => now);
  const history = new History(
    (server) => rates.timesOfMinute(server),
    () => now,
  );
  const counter = new CallCounter(fakeHost);
  let measurements = 0;
  const gauges = () => {
    measurements += 1;
    return { sessions, streams: 1, memoryBytes: 5e7, childBytes: 1e8, bytesByServer: new Map([['files', 1e8]]) };
  };
  return {
    history,
    count: (call: EndedCall) => counter.count(call),
    measurements: () => measurements,
    open: (count: number) => {
      sessions = count;
    },
    /** Passes seconds, with a tick after each. */
    pass(seconds: number) {
      for (let second = 0; second < seconds; second += 1) {
        now += 1_000;
        counter.fold((server, counts) => {
          rates.add(server, counts);
          history.add(server, counts);
        });
        history.tick(gauges);
      }
    },
    /** Passes time without a tick, as a gateway that hangs. */
    hang: (seconds: number) => {
      now += seconds * 1_000;
    },
  };
}

test('each second has its calls by server and in all, and the state of the instance', () => {
  const { history, count, open, pass, measurements } = createHistory();
  count(ended('files'));
  count(ended('mail', 'tool_error'));
  open(2);
  pass(1);
  history.countResume();
  open(3);
  pass(1);
  expect(measurements()).toBe(2);
  const { newest, steps, stepMs, instance, servers } = history.after('5m', -1);
  expect({ newest, steps, stepMs }).toEqual({ newest: 1, ...historyRanges['5m'] });
  expect(instance).toMatchObject({
    calls: [2, 0],
    failures: [1, 0],
    p50Ms: [3, 3],
    sessions: [2, 3],
    resumes: [0, 1],
  });
  expect(instance).toMatchObject({ takeovers: [0, 0], memoryBytes: [5e7, 5e7], childBytes: [1e8, 1e8] });
  expect(servers).toEqual({
    files: {
      calls: [1, 0],
      failures: [0, 0],
      p50Ms: [3, 3],
      p95Ms: [3, 3],
      p99Ms: [null, null],
      memoryBytes: [1e8, 1e8],
    },
    mail: {
      calls: [1, 0],
      failures: [1, 0],
      p50Ms: [3, 3],
      p95Ms: [3, 3],
      p99Ms: [null, null],
      memoryBytes: [null, null],
    },
  });
});

test('a step that is shorter than a minute has the response times of the minute before it', () => {
  const { history, count, pass } = createHistory();
  count(ended('files'));
  pass(1);
  count({ ...ended('files'), durationMs: 90 });
  pass(70);
  const { p95Ms = [] } = history.after('5m', -1).instance;
  expect(p95Ms[0]).toBe(3);
  for (const second of [1, 50]) expect(p95Ms[second]).toBeCloseTo(90, -1);
  expect(p95Ms.at(-1)).toBeNull();
});

test('a page gets only the steps that it does not have', () => {
  const { history, pass } = createHistory();
  pass(10);
  expect(history.after('5m', 6)).toMatchObject({ newest: 9, instance: { calls: [0, 0, 0] } });
  expect(history.after('5m', 9).instance['calls']).toEqual([]);
});

test('a coarse range has rates over its steps', () => {
  const { history, count, pass } = createHistory();
  for (let second = 0; second < 10; second += 1) {
    count(ended('files'));
    count(ended('files'));
    pass(1);
  }
  expect(history.after('1h', -1)).toMatchObject({ newest: 0, instance: { calls: [2], p50Ms: [3] } });
  expect(history.after('24h', -1)).toMatchObject({ newest: -1, instance: { calls: [] } });
});

test('a range has no more steps than it may, and the oldest are overwritten', () => {
  const { history, open, pass } = createHistory();
  open(1);
  pass(historyRanges['5m'].steps);
  open(2);
  pass(1);
  const { instance } = history.after('5m', -1);
  expect(instance['sessions']).toHaveLength(historyRanges['5m'].steps);
  expect([instance['sessions']?.[0], instance['sessions']?.at(-1)]).toEqual([1, 2]);
});

test('seconds in which the gateway hung have no values', () => {
  const { history, open, pass, hang } = createHistory();
  open(1);
  pass(2);
  hang(3);
  pass(1);
  expect(history.after('5m', -1).instance['sessions']).toEqual([1, 1, 1, null, null, null]);
  hang(10 * historyRanges['5m'].steps);
  pass(1);
  const { instance } = history.after('5m', -1);
  expect(instance['sessions']?.filter((value) => value !== null)).toEqual([]);
});

test('only so many servers have plots of their own; all count for the instance', () => {
  const { history, count, pass } = createHistory();
  for (let server = 0; server < 40; server += 1) count(ended(`server-${server}`));
  pass(1);
  const { instance, servers } = history.after('5m', -1);
  expect(instance['calls']).toEqual([40]);
  expect(Object.keys(servers)).toHaveLength(32);
  history.forget('server-0');
  expect(Object.keys(history.after('5m', -1).servers)).toHaveLength(31);
});

test('the usual number of sessions and the growth of memory are known after a minute or two', () => {
  const { history, open, pass } = createHistory();
  open(4);
  pass(50);
  expect(history.usual()).toMatchObject({ sessions: undefined, grownBytes: undefined });
  pass(20);
  expect(history.usual().sessions).toBe(4);
  open(9);
  pass(20);
  expect(history.usual()).toMatchObject({ sessions: 4, sessionsSpanMs: 90_000 });
  pass(60);
  expect(history.usual()).toMatchObject({ grownBytes: 0, grownSpanMs: 150_000 });
});

test('memory that grows is told from the first minute to the last, with the server whose memory grew most', () => {
  let now = 0;
  let memoryBytes = 1e8;
  const history = new History(
    () => ({ p50Ms: null, p95Ms: null, p99Ms: null }),
    () => now,
  );
  const counter = new CallCounter(fakeHost);
  for (const server of ['files', 'mail']) counter.count(ended(server));
  counter.fold((server, counts) => history.add(server, counts));
  for (let second = 0; second < 300; second += 1) {
    now += 1_000;
    memoryBytes += 1e6;
    const bytesByServer = new Map([
      ['files', 5e7],
      ['mail', now * 100],
    ]);
    history.tick(() => ({ sessions: 1, streams: 0, memoryBytes, childBytes: 5e7, bytesByServer }));
  }
  const { grownBytes = 0, mostGrown } = history.usual();
  expect(mostGrown).toMatchObject({ name: 'mail' });
  expect(mostGrown?.bytes).toBeGreaterThan(2e7);
  expect(grownBytes).toBeGreaterThan(2e8);
  expect(grownBytes).toBeLessThan(3e8);
});
