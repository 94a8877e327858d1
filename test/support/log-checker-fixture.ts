import { type Evidence, violationsOf } from './log-checker.ts';
import { type LogEntry, logNameOf } from './session-logs.ts';
import type { SseEvent } from './sse-reader.ts';
import { markOf, type RecordedCall, type RecordedConnection, type SessionTranscript } from './transcript.ts';

/** Place `12` is entry 2 of epoch 1, `20` the marker of epoch 2. */
export const placeOf = (n: number) => ({ epoch: Math.floor(n / 10), seq: n % 10 });
export const idOf = (stream: number, n: number) => `${stream}.${placeOf(n).epoch}-${placeOf(n).seq}`;

export const text = (message: object) => JSON.stringify({ jsonrpc: '2.0', ...message });
export const result = (call: string, more = '', mark = markOf('s', call)) =>
  text({ id: call, result: { text: mark + more } });
export const progress = (call: string, n: number, mark = markOf('s', call)) =>
  text({ method: 'notifications/progress', params: { progressToken: call, progress: n, message: mark } });
export const told = (n: number, session = 's') =>
  text({ method: 'told', params: { n, text: markOf(session, 'tell') } });

export const logged = (
  n: number,
  stream: number,
  previous: number | undefined,
  data: string,
  last = false,
): LogEntry => ({
  ...placeOf(n),
  stream,
  previous: previous === undefined ? undefined : placeOf(previous),
  data,
  last,
});
export const marker = (n: number): LogEntry => ({
  ...placeOf(n),
  stream: undefined,
  previous: undefined,
  data: '',
  last: false,
});

/** Call `a` has stream 1 and is answered by a second owner; in between, the GET stream receives two messages. */
export const log = [
  logged(11, 1, undefined, ''),
  logged(12, 1, 11, progress('a', 1)),
  logged(13, 0, undefined, told(1)),
  logged(14, 1, 12, progress('a', 2)),
  marker(20),
  logged(21, 0, 13, told(2)),
  logged(22, 1, 14, result('a'), true),
];
export const event = (
  n: number,
  data = log.find(({ epoch, seq }) => epoch * 10 + seq === n)?.data,
  stream = 1,
): SseEvent => ({
  id: idOf(stream, n),
  event: 'message',
  data: data ?? '',
});
export const prime = (n: number, stream = 1): SseEvent => ({ id: idOf(stream, n), data: '' });

export const connection = (more: Partial<RecordedConnection>): RecordedConnection => ({
  method: 'POST',
  after: undefined,
  status: 200,
  events: [],
  text: '',
  isWhole: true,
  call: 'a',
  ...more,
});
export const posted = (...events: SseEvent[]) => connection({ events, isWhole: false });
export const resumed = (after: number, ...events: SseEvent[]) =>
  connection({ method: 'GET', after: idOf(1, after), events: [prime(after), ...events] });
export const listened = (...events: SseEvent[]) =>
  connection({ method: 'GET', call: undefined, events: [prime(10, 0), ...events] });
export const json = (status: number, body: string, call = 'a') => connection({ status, text: body, call });

export const call = (id: string, more: Partial<RecordedCall> = {}): RecordedCall => ({
  id,
  mark: markOf('s', id),
  isOnce: true,
  isGivenUp: false,
  startedAt: 0,
  endedAt: 1,
  ...more,
});
export const session = (
  connections: RecordedConnection[],
  more: Partial<SessionTranscript> = {},
): SessionTranscript => ({
  name: 's',
  sessionId: 'id-of-s',
  calls: [call('a')],
  connections,
  isEnded: false,
  ...more,
});
export const good = [
  posted(prime(11), event(12)),
  resumed(12, event(14)),
  listened(event(13, told(1), 0), event(21, told(2), 0)),
  resumed(14, event(22)),
];
/** The transcript of the client, and the log. */
export const evidence = (
  transcript: SessionTranscript,
  entries: readonly LogEntry[] | undefined = log,
  more: Partial<Evidence> = {},
): Evidence => ({
  transcripts: [transcript],
  logs: new Map(entries.length === 0 ? [] : [[logNameOf('id-of-s'), { entries }]]),
  ...more,
});
export const kindsOf = (given: Evidence) => [...new Set(violationsOf(given).map(({ kind }) => kind))];
export const changed = (n: number, change: Partial<LogEntry>) =>
  log.map((entry) => (entry.epoch * 10 + entry.seq === n ? { ...entry, ...change } : entry));
