import { expect, test } from 'vitest';
import { lostTicks } from './lost-ticks.ts';
import { type LogEntry, logNameOf } from './session-logs.ts';
import type { SessionTranscript } from './transcript.ts';

const tick = (n: number): string =>
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/ticked', params: { pid: 1, n } });
const event = (id: string, n: number) => ({ id, data: tick(n) });
const entry = (stream: number, seq: number, data: string): LogEntry => ({
  ...{ epoch: 5, seq, stream, previous: undefined, data, last: false },
});

/** A client that got the numbers 1 and 3 on its GET stream; 2 was at the third place of the log. */
function check(call: Partial<SessionTranscript['connections'][number]>, entries: readonly LogEntry[]) {
  const get = { method: 'GET', status: 200, text: '', isWhole: false, events: [event('0.5-2', 1), event('0.5-4', 3)] };
  const post = { method: 'POST', status: 200, text: '', isWhole: false, events: [], call: 'c', ...call };
  const transcript = { name: 's', sessionId: 'x', calls: [], isEnded: false, connections: [get, post] };
  return lostTicks(transcript as SessionTranscript, new Map([[logNameOf('x'), { entries }]])).map(({ what }) => what);
}

const onGet = [entry(0, 2, tick(1)), entry(0, 3, tick(2)), entry(0, 4, tick(3))];
const onCall = [entry(0, 2, tick(1)), entry(7, 3, tick(2)), entry(0, 4, tick(3))];
const answered = { isWhole: true, events: [{ id: '7.5-1', data: '{"id":"c","result":{}}' }] };

test('a number that the client lacks is lost, although a call broke', () => {
  expect(check({}, onGet)).toEqual([expect.stringContaining('without 2')]);
});

test('a number on the stream of a call that broke before its first event is none', () => {
  expect(check({}, onCall)).toEqual([]);
  expect(check({ isWhole: true, text: '{"error":{"data":{"reason":"outcome_unknown"}}}' }, onCall)).toEqual([]);
  const event = { data: '{"error":{"data":{"reason":"outcome_unknown"}}}' };
  expect(check({ isWhole: true, events: [event] }, onCall)).toEqual([]);
  expect(check(answered, onCall)).toEqual([expect.stringContaining('without 2')]);
});

test('a number at a place that the log has lost may have been on that stream', () => {
  expect(check({}, [])).toEqual([]);
  expect(check(answered, [])).toEqual([expect.stringContaining('without 2')]);
});
