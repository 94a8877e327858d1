import { describe, expect, test } from 'vitest';
import { type Evidence, faultsOfGrowth, outcomesOf, type ViolationKind, violationsOf } from './log-checker.ts';
import {
  call,
  changed,
  connection,
  event,
  evidence,
  good,
  idOf,
  json,
  kindsOf,
  listened,
  log,
  logged,
  marker,
  placeOf,
  posted,
  prime,
  progress,
  result,
  resumed,
  session,
  text,
  told,
} from './log-checker-fixture.ts';
import { startRedis } from './redis-server.ts';
import { type LogEntry, logNameOf, readLogs } from './session-logs.ts';
import { markOf, type RecordedConnection } from './transcript.ts';

const refusal = (id: string, reason: string) => text({ id, error: { data: { reason } } });
/** Call `a` was run once. */
const ran = (...connections: RecordedConnection[]) =>
  evidence(session(connections), log, { executions: [markOf('s', 'a')] });

describe('the checker of clusters passes', () => {
  const broken = connection({ status: 0, isWhole: false });
  test.each<[string, Evidence]>([
    ['a stream that was resumed across a takeover', evidence(session(good))],
    [
      'two resumes from one place, and one when it was over',
      evidence(session([...good, resumed(12, event(14), event(22)), { ...resumed(22), status: 204, events: [] }])),
    ],
    [
      'a list that the next owner has answered again',
      {
        ...evidence(session(good, { calls: [call('a', { isOnce: false })] }), [
          ...log.slice(0, 3),
          logged(14, 1, 12, progress('a', 2)),
          logged(15, 5, undefined, result('a'), true),
          ...log.slice(4),
        ]),
      },
    ],
    [
      'a list that one owner has answered on two streams, since a connection between instances lost the first answer',
      evidence(session(good, { calls: [call('a', { isOnce: false })] }), [
        ...log,
        logged(23, 5, undefined, result('a'), true),
      ]),
    ],
    ['a log that lost its oldest', evidence(session(good), log.slice(3))],
    ['a log that went with its session', evidence(session(good, { isEnded: true }), [])],
    [
      'a call answered by JSON, by an error, or by nobody before it was accepted',
      evidence(
        session(
          [
            json(200, result('a')),
            json(503, text({ id: 'b', error: { data: { reason: 'busy' } } }), 'b'),
            { ...broken, call: 'c' },
          ],
          { calls: [call('a'), call('b'), call('c')] },
        ),
      ),
    ],
    [
      'a break that was told',
      evidence(
        session([
          posted(prime(11)),
          connection({
            method: 'GET',
            after: idOf(1, 11),
            events: [
              {
                id: `1.2-${Number.MAX_SAFE_INTEGER}`,
                data: text({ id: 'a', error: { data: { reason: 'history_lost' } } }),
              },
            ],
          }),
        ]),
        log.slice(3),
      ),
    ],
    [
      'a gap on the GET stream that was told',
      evidence(
        session([
          ...good,
          connection({
            method: 'GET',
            call: undefined,
            after: idOf(0, 10),
            events: [{ event: 'gap', data: '{}' }, event(21, told(2), 0)],
          }),
        ]),
        log.slice(3),
      ),
    ],
    ['what the store lost, where it did', evidence(session(good), [marker(14), ...log.slice(4)], { isDataLost: true })],
    [
      'what the store lost together with the owner',
      evidence(session(good), [...log.slice(0, 1), ...log.slice(4)], { isDataLost: true, isOwnerLost: true }),
    ],
    ['a true refusal of a call that ran', ran(json(502, refusal('a', 'outcome_unknown')))],
    ['a refusal of a call that did not run', evidence(session([json(404, refusal('a', 'unknown_session'))]))],
    ['a call that ended within its deadline', evidence(session(good, { calls: [call('a', { deadlineMs: 100 })] }))],
    ['a client that gave up', evidence(session([posted(prime(11))], { calls: [call('a', { isGivenUp: true })] }))],
    ['what was seen without any logs', { transcripts: [session(good)] }],
  ])('%s', (_, given) => {
    expect(violationsOf(given)).toEqual([]);
  });
});

describe('the checker of clusters finds', () => {
  const [first = posted(), second = posted(), third = posted(), fourth = posted()] = good;
  test.each<[string, ViolationKind, Evidence]>([
    ['a wrong order', 'order', evidence(session([posted(prime(11), event(14), event(12)), third, fourth]))],
    ['an event of before the place of a resume', 'order', evidence(session([...good, resumed(14, event(12))]))],
    ['a priming event amid others', 'order', evidence(session([posted(event(12), prime(11)), second, third, fourth]))],
    ['a gap', 'gap', evidence(session([posted(prime(11), event(14)), third, fourth]))],
    ['a gap behind a resume', 'gap', evidence(session([first, resumed(12, event(22)), third]))],
    ['a gap at the beginning', 'gap', evidence(session([posted(event(14)), third, fourth]))],
    ['a gap that only another connection shows', 'gap', { transcripts: [session([...good, resumed(12, event(22))])] }],
    ['an evicted event that was not told of', 'gap', evidence(session([first, resumed(12, event(22))]), log.slice(4))],
    ['204 for a stream that goes on', 'gap', evidence(session([...good, { ...resumed(12), status: 204, events: [] }]))],
    ['an event twice', 'double', evidence(session([posted(prime(11), event(12), event(12)), second, third, fourth]))],
    [
      'an event again behind a resume',
      'double',
      evidence(session([first, resumed(12, event(12), event(14)), third, fourth])),
    ],
    ['an id that is not in the log', 'not_in_log', evidence(session([...good, resumed(22, event(23, told(3)))]))],
    [
      'an id of a lost owner',
      'not_in_log',
      evidence(session([...good, posted(prime(11), event(12), event(14), event(15, progress('a', 3)))])),
    ],
    ['a session without a log', 'not_in_log', evidence(session(good), [])],
    ['what the store lost, where it should not', 'not_in_log', evidence(session(good), [marker(14), ...log.slice(4)])],
    [
      'what the store lost while the owner lived',
      'not_in_log',
      evidence(session(good), [...log.slice(0, 1), ...log.slice(4)], { isDataLost: true }),
    ],
    ['two contents of an id', 'two_contents', evidence(session([...good, resumed(12, event(14, progress('a', 9)))]))],
    [
      'another content than in the log',
      'two_contents',
      evidence(session(good), changed(14, { data: progress('a', 9) })),
    ],
    ['one place in two streams', 'two_contents', evidence(session([...good, listened(event(14, told(1), 0))]))],
    [
      'an older epoch after a newer one',
      'old_epoch',
      evidence(session([...good, resumed(11, event(12), event(14), event(22), event(14))])),
    ],
    ['the same in a log', 'old_epoch', evidence(session(good), [...log, logged(15, 0, 21, told(3))])],
    [
      'a disorder in a log',
      'order',
      evidence(session(good), [...log.slice(0, 3), logged(11, 0, 13, told(2)), ...log.slice(3)]),
    ],
    [
      'a number that a log lacks',
      'gap',
      evidence(session([json(200, result('a'))]), [...log.slice(0, 1), ...log.slice(2)]),
    ],
    ['a broken chain', 'chain', evidence(session(good), changed(14, { previous: placeOf(11) }))],
    ['a chain that begins again', 'chain', evidence(session(good), changed(22, { previous: undefined }))],
    ['a chain to what is not there', 'chain', evidence(session(good), changed(13, { previous: placeOf(11) }))],
    ['an event after the end of its stream', 'order', evidence(session(good), changed(14, { last: true }))],
    ['progress after the answer', 'order', evidence(session(good), [...log, logged(23, 0, 21, progress('a', 3))])],
    [
      'two contents of an id without logs',
      'two_contents',
      { transcripts: [session([...good, resumed(12, event(14, progress('a', 9)))])] },
    ],
    [
      'a resume from what is no id',
      'malformed',
      evidence(session([...good, { ...resumed(12), after: 'x', events: [] }])),
    ],
    [
      'a priming event from elsewhere',
      'order',
      evidence(session([...good, connection({ method: 'GET', after: idOf(1, 12), events: [prime(14), event(22)] })])),
    ],
    ['progress that goes back', 'double', evidence(session(good), changed(14, { data: progress('a', 1) }))],
    ['two answers in a log', 'two_answers', evidence(session(good), changed(14, { data: result('a') }))],
    [
      'two answers of one owner to a call that runs once',
      'two_answers',
      evidence(session(good), [...log, logged(23, 5, undefined, result('a'), true)]),
    ],
    [
      'two answers on streams',
      'two_answers',
      { transcripts: [session([...good, resumed(22, event(23, result('a')))])] },
    ],
    ['an answer as JSON and one as an event', 'two_answers', evidence(session([...good, json(200, result('a'))]))],
    ['no answer of an accepted call', 'no_answer', evidence(session([first, second, third]))],
    ['an orderly end without an answer', 'no_answer', evidence(session([connection({ isWhole: true })]))],
    ['a call of another client', 'foreign', evidence(session([...good, json(200, result('z'), 'a')]))],
    [
      'the answer of another call',
      'foreign',
      evidence(session([...good, json(200, result('b'))], { calls: [call('a'), call('b', { isGivenUp: true })] })),
    ],
    ['the content of another call', 'foreign', evidence(session([json(200, result('a', '', markOf('s', 'b')))]))],
    [
      'the content of another session',
      'foreign',
      evidence(session([...good, json(200, result('a', '', markOf('t', 'a')))])),
    ],
    [
      'a notification of another session',
      'foreign',
      { transcripts: [session([listened(event(13, told(1, 't'), 0))], { calls: [] })] },
    ],
    [
      'progress of another call',
      'foreign',
      { transcripts: [session([posted(prime(11), event(12, progress('z', 1)))])] },
    ],
    ['an event of another stream', 'foreign', evidence(session([...good, resumed(12, event(13, told(1), 0))]))],
    [
      'a tool that ran twice',
      'run_twice',
      evidence(session(good), log, { executions: [markOf('s', 'a'), markOf('s', 'a')] }),
    ],
    ...['busy', 'store_unavailable', 'draining'].map((reason): [string, ViolationKind, Evidence] => [
      `a refused call that ran: ${reason}`,
      'untrue_refusal',
      ran(json(503, refusal('a', reason))),
    ]),
    ['an unknown session for a call that ran', 'untrue_refusal', ran(json(404, refusal('a', 'unknown_session')))],
    [
      'a refusal in the stream of a call that ran',
      'untrue_refusal',
      ran(posted(prime(11), { id: idOf(1, 12), data: refusal('a', 'store_unavailable') })),
    ],
    [
      'a call without an end within its deadline',
      'late',
      evidence(session([json(200, result('a'))], { calls: [call('a', { deadlineMs: 100, endedAt: undefined })] })),
    ],
    [
      'a call whose end came late',
      'late',
      evidence(session([json(200, result('a'))], { calls: [call('a', { deadlineMs: 100, endedAt: 101 })] })),
    ],
    [
      'an answer after the news that it is lost',
      'two_answers',
      evidence(session([...good.slice(0, 1), json(200, refusal('a', 'history_lost')), ...good.slice(1)])),
    ],
    ['a GET that was refused', 'status', evidence(session([...good, { ...resumed(12), status: 503, events: [] }]))],
    [
      'an event without an id and without an answer behind it',
      'malformed',
      evidence(session([...good, connection({ events: [{ data: progress('a', 1) }] })])),
    ],
    [
      'an event with an id behind one without',
      'malformed',
      evidence(session([posted({ data: progress('a', 1) }, event(12)), third, fourth])),
    ],
    ['an id that is none', 'malformed', evidence(session([...good, posted({ id: 'x', data: result('a') })]))],
    ['a message that is none', 'malformed', evidence(session([...good, json(200, '{"cut')]))],
  ])('%s', (_, kind, given) => {
    expect(kindsOf(given)).toContain(kind);
  });

  test('that nothing was recorded', () => {
    expect(() => violationsOf(evidence(session([])))).toThrow('Nothing was recorded');
  });

  test('what became of a log between two looks', () => {
    const kindsOfGrowth = (before: readonly LogEntry[], after: readonly LogEntry[]) =>
      faultsOfGrowth('s', { entries: before }, { entries: after }).map(({ kind }) => kind);
    expect(kindsOfGrowth(log.slice(0, 4), log)).toEqual([]);
    expect(kindsOfGrowth(log.slice(0, 4), log.slice(2))).toEqual([]);
    expect(kindsOfGrowth(log, [...log.slice(0, 4), logged(15, 1, 14, 'x'), ...log.slice(4)])).toEqual(['old_epoch']);
    expect(kindsOfGrowth(log, log.slice(0, 6))).toEqual(['rewritten']);
    expect(kindsOfGrowth(log, changed(14, { data: 'x' }))).toEqual(['rewritten']);
  });
});

test('tells what became of each call', () => {
  const failed = text({ id: 'b', error: { code: 1, message: 'x', data: { reason: 'outcome_unknown' } } });
  const names = ['a', 'b', 'c', 'd', 'e'];
  const seen = [
    ...good,
    json(502, failed, 'b'),
    connection({ call: 'c', status: 0, isWhole: false }),
    connection({ call: 'd', status: 502, text: 'No instance accepts a connection.\n' }),
    connection({ call: 'e', isWhole: false, events: [prime(31, 5)] }),
  ];
  const outcomes = outcomesOf(session(seen, { calls: names.map((name) => call(name)) }));
  expect(names.map((name) => outcomes.get(name))).toEqual([
    { outcome: 'answered' },
    { outcome: 'error', reason: 'outcome_unknown', status: 502 },
    { outcome: 'broken' },
    { outcome: 'broken' },
    { outcome: 'none' },
  ]);
});

test('reads logs as they are in Redis', async () => {
  const redis = await startRedis();
  const key = `gangway:session:{${logNameOf('id-of-s')}}:log`;
  const time = '1763634000000';
  const two = '1 0 0 \n1 0 10 1-1\n{"a":"ä"}';
  await redis.cli('XADD', key, '1-2', 'h', `${time} 2 10 1:2:0`, 'd', two);
  await redis.cli('XADD', key, '2-0', 'm', '');
  await redis.cli('XADD', key, '2-1', 'h', `${time} 1 2 1:1:1`, 'd', '1 1 2 1-2\n{}');
  expect((await readLogs(redis)).get(logNameOf('id-of-s'))?.entries).toEqual([
    logged(11, 1, undefined, ''),
    logged(12, 1, 11, '{"a":"ä"}'),
    marker(20),
    logged(21, 1, 12, '{}', true),
  ]);
});
