import { describe, expect, it, vi } from 'vitest';
import type { CallEvent } from '../../../../src/core/call/call-events.ts';
import { CallReport } from '../../../../src/core/call/call-report.ts';
import { readHandshake } from '../../../../src/core/protocol/handshake.ts';
import { readSmallTexts } from '../../../../src/core/protocol/message/message.ts';
import { Outbound } from '../../../../src/core/session/outbound/outbound.ts';
import { SessionLog } from '../../../../src/core/session/outbound/session-log.ts';
import { ServerLink } from '../../../../src/core/session/server/server-link.ts';
import { toText } from '../../../support/as-message.ts';
import { createFakeAnswer, FakeTarget } from '../../../support/fake-answer.ts';
import { readMessage } from '../../../support/fake-backend.ts';
import { createCore } from '../core-fixture.ts';
import { handshake } from '../session-fixture.ts';

const maxEventBytes = 1_000;

interface Watched {
  readonly watch?: CallReport;
  readonly isStream?: boolean;
}

function createFixture({ hasGet = false, isOpening = false } = {}) {
  const { session, telemetry } = createCore({ limits: { maxEventBytes } });
  if (!isOpening) session.handshake = readHandshake(Buffer.from(JSON.stringify({ result: handshake })));
  const { calls, serverRequests } = session;
  const streams = new Map<string | number, string[]>();
  const toGet: string[] = [];
  const toServer: string[] = [];
  const stored: (() => void)[] = [];
  const link = new ServerLink(session);
  vi.spyOn(link, 'send').mockImplementation(({ text }) => {
    toServer.push(text.toString());
    return 'sent';
  });
  const sessionLog = new SessionLog(session);
  vi.spyOn(sessionLog, 'add').mockImplementation((_, text) => void toGet.push(text.toString()));
  vi.spyOn(sessionLog, 'whenStored').mockImplementation((tell) => void stored.push(() => tell(true)));
  vi.spyOn(sessionLog.streams, 'hasGet', 'get').mockReturnValue(hasGet);
  const router = new Outbound(session, link, sessionLog);
  const { drops: dropped } = telemetry;
  const receive = (...lines: unknown[]): void => {
    router.onMessages(readSmallTexts(lines.map(toText)).messages);
  };
  /** A call in flight and the texts that its stream gets. */
  const call = (id: string | number, method = 'tools/call', { watch, isStream = false }: Watched = {}): string[] => {
    const target = new FakeTarget();
    const { texts } = target;
    streams.set(id, texts);
    const answer = createFakeAnswer(id, { target });
    calls.add({
      id,
      method,
      progressToken: undefined,
      taskId: undefined,
      answer,
      request: undefined,
      activeAt: 0,
      startedAt: 0,
      report: watch,
    });
    if (isStream) answer.message(readMessage(log));
    return texts;
  };
  /** True if the client's response to this request is one that the server waits for. */
  const settles = (id: string | number): boolean => serverRequests.settle(readMessage(response(id))) !== undefined;
  return { router, calls, settles, call, receive, toGet, toServer, dropped, initialized: session.initialized, stored };
}

const log = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } };
const ask = (id: string | number, params: object = {}) => ({ jsonrpc: '2.0', id, method: 'roots/list', params });
const cancelled = (requestId: string | number) => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
});
const response = (id: unknown, result: unknown = {}) => ({ jsonrpc: '2.0', id, result });
const errorTo = (text: string | undefined) => JSON.parse(text ?? 'null');

describe('[R6.03] [F17] server output that is no message for a client', () => {
  it.each([
    ['an unknown id', response(9)],
    ['an id of another type', response('1')],
    ['the id null', { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'x' } }],
  ])('such as a response to %s is dropped, and never goes to a stream', (_, message) => {
    const { receive, call, dropped, toGet } = createFixture({ hasGet: true });
    const texts = call(1);
    receive(message);
    expect({ dropped, toGet, texts }).toEqual({ dropped: ['unknown_response'], toGet: [], texts: [] });
  });

  const nested = '['.repeat(1_001) + ']'.repeat(1_001);

  it('[P3] [S-05] ends a call at once if it is a too complex response', () => {
    const { receive, call, dropped } = createFixture();
    const [first, second] = [call(1, 'tools/call', { isStream: true }), call('b', 'tools/call', { isStream: true })];
    receive(`{"result":{"a":${nested}},"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":"b","result":${nested}}`);
    for (const texts of [first, second])
      expect(errorTo(texts.at(-1)).error.data).toEqual({ reason: 'response_too_complex' });
    receive(`{"jsonrpc":"2.0","id":9,"result":${nested}}`);
    expect(dropped).toEqual(['unknown_response']);
  });

  it('[P3] [S-05] fails initialize if it is a too complex response', () => {
    const { receive, call, initialized } = createFixture();
    call(1, 'initialize');
    receive(`{"result":{"a":${nested}},"jsonrpc":"2.0","id":1}`);
    expect(errorTo(initialized[0]).error.data).toEqual({ reason: 'response_too_complex' });
  });

  it('[P3] [S-05] is refused if it is a too complex request, even under the id of a call', () => {
    const { receive, call, calls, toServer, dropped } = createFixture();
    const texts = call(1);
    receive(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"a":${nested}}}`);
    expect({ dropped, texts, inFlight: calls.has(1) }).toEqual({ dropped: ['oversized'], texts: [], inFlight: true });
    expect(errorTo(toServer[0])).toMatchObject({ id: 1, error: { data: { reason: 'server_request_refused' } } });
  });

  it('is dropped if it is a second response to a request', () => {
    const { receive, call, dropped } = createFixture();
    call(1);
    receive(response(1), response(1));
    expect(dropped).toEqual(['unknown_response']);
  });
});

describe('the response of a server to initialize', () => {
  it('is not passed on by attribution', () => {
    const { receive, call, initialized, calls } = createFixture();
    const texts = call(0, 'initialize');
    receive(response(0));
    expect({ initialized, texts }).toEqual({ initialized: [JSON.stringify(response(0))], texts: [] });
    expect(calls.size).toBe(0);
  });
});

describe('requests of a server to its client', () => {
  it('go to their call, and so does their cancellation, even if another call is newer by then', () => {
    const { receive, call, toGet } = createFixture({ hasGet: true });
    const first = call(1);
    receive(ask('s1'));
    const second = call(2);
    receive(cancelled('s1'));
    expect(first).toEqual([JSON.stringify(ask('s1')), JSON.stringify(cancelled('s1'))]);
    expect({ second, toGet }).toEqual({ second: [], toGet: [] });
  });

  it('go to the GET stream without a call, and so does their cancellation, even if a call came since', () => {
    const { receive, call, toGet } = createFixture({ hasGet: true });
    receive(ask('s1'));
    const texts = call(1);
    receive(cancelled('s1'));
    expect({ texts, toGet }).toEqual({
      texts: [],
      toGet: [JSON.stringify(ask('s1')), JSON.stringify(cancelled('s1'))],
    });
  });

  it('that were cancelled are no longer open', () => {
    const { receive, settles } = createFixture();
    receive(ask('s1'), ask(1), cancelled('s1'));
    expect([settles('s1'), settles('1'), settles(1)]).toEqual([false, false, true]);
  });

  it('[R7.23] are open until the client has answered, once', () => {
    const { receive, settles } = createFixture();
    receive(ask('s1'));
    expect([settles('s1'), settles('s1')]).toEqual([true, false]);
  });

  it('whose stream is gone have their cancellation sent by attribution', () => {
    const { receive, call, toGet } = createFixture({ hasGet: true });
    call(1);
    receive(ask('s1'), response(1), cancelled('s1'));
    expect(toGet).toEqual([JSON.stringify(cancelled('s1'))]);
  });

  it('[P8] beyond a thousand open ones are answered by the gateway until one is settled', () => {
    const { receive, settles, toGet, toServer } = createFixture();
    for (let id = 0; id < 1_000; id++) receive(ask(id));
    expect({ got: toGet.length, toServer }).toEqual({ got: 1_000, toServer: [] });
    receive(ask('more'));
    expect(toGet).toHaveLength(1_000);
    expect(errorTo(toServer[0])).toMatchObject({ id: 'more', error: { data: { reason: 'server_request_refused' } } });
    settles(5);
    receive(ask('more'));
    expect([toGet.length, toServer.length]).toEqual([1_001, 1]);
  });

  it.each([
    { hasGet: false, toServer: ['{"jsonrpc":"2.0","id":"p","result":{}}'], onGet: 0 },
    { hasGet: true, toServer: [], onGet: 1 },
  ])('that are pings are answered by the gateway if no client listens: a GET stream is $hasGet', (expected) => {
    const { receive, toServer, toGet } = createFixture({ hasGet: expected.hasGet });
    receive({ jsonrpc: '2.0', id: 'p', method: 'ping' });
    expect([toServer, toGet.length]).toEqual([expected.toServer, expected.onGet]);
  });

  it('that are pings are answered by the gateway before the answer to initialize: its client may not know its session', () => {
    const { receive, call, toServer, toGet } = createFixture({ hasGet: true, isOpening: true });
    const texts = call(0, 'initialize');
    receive({ jsonrpc: '2.0', id: 'p', method: 'ping' });
    expect([toServer, toGet, texts]).toEqual([['{"jsonrpc":"2.0","id":"p","result":{}}'], [], []]);
  });

  it('[P8] larger than an event may be are answered by the gateway, so that the server does not wait', () => {
    const { receive, settles, toGet, toServer, dropped } = createFixture();
    receive(ask('s1', { text: 'x'.repeat(maxEventBytes) }));
    expect({ toGet, dropped }).toEqual({ toGet: [], dropped: ['oversized'] });
    expect(errorTo(toServer[0])).toMatchObject({ id: 's1', error: { data: { reason: 'server_request_refused' } } });
    expect(settles('s1')).toBe(false);
  });
});

describe('[P8] a server’s notification that is larger than an event may be', () => {
  it('is dropped and counted, and its call goes on', () => {
    const { receive, call, calls, dropped } = createFixture();
    const texts = call(1);
    receive({ ...log, params: { level: 'info', data: 'x'.repeat(maxEventBytes) } }, log);
    expect({ texts, dropped }).toEqual({ texts: [JSON.stringify(log)], dropped: ['oversized'] });
    expect(calls.has(1)).toBe(true);
  });
});

describe('the measured end of a call', () => {
  const watched = () => {
    const ended: CallEvent[] = [];
    const emit = (event: CallEvent): void => void ended.push(event);
    const watch = new CallReport({ emit, wantsNames: false }, { server: 's', era: 'legacy', principal: undefined });
    watch.sent();
    return { watch, ended };
  };

  it('is its response if it is answered as JSON', () => {
    const { receive, call, stored } = createFixture();
    const { watch, ended } = watched();
    call(1, 'tools/call', { watch });
    receive(response(1));
    expect([ended.length, stored]).toEqual([1, []]);
  });

  it('is the logged response if it is answered on a stream, and that wait counts for the gateway', () => {
    const { receive, call, stored } = createFixture();
    const { watch, ended } = watched();
    call(1, 'tools/call', { watch, isStream: true });
    receive(response(1));
    expect(ended).toEqual([]);
    const { serverMs } = watch;
    expect(serverMs).toBeGreaterThanOrEqual(0);
    for (const tell of stored) tell();
    expect(ended).toEqual([watch]);
    expect(watch.serverMs).toBe(serverMs);
  });

  it('counts the server’s part of initialize until its answer, and not until the record is written', () => {
    const { receive, call } = createFixture();
    const { watch } = watched();
    call(0, 'initialize', { watch });
    receive(response(0));
    expect(watch.serverMs).toBeGreaterThanOrEqual(0);
  });
});

describe('[P4] a question of the server marks the calls that may have caused it, which never run again', () => {
  const elicitation = { jsonrpc: '2.0', id: 's', method: 'elicitation/create', params: {} };
  const marked = ({ calls }: ReturnType<typeof createFixture>) =>
    calls.all().flatMap(({ id, hasAsked }) => (hasAsked ? [id] : []));

  function withCalls(hasGet = false) {
    const fixture = createFixture({ hasGet });
    fixture.call(1);
    fixture.call(2, 'tools/list');
    fixture.call(3);
    return fixture;
  }

  it('all that can ask, if the question does not name one', () => {
    const fixture = withCalls(true);
    fixture.receive(elicitation);
    expect(fixture.toGet).toHaveLength(1);
    expect(marked(fixture)).toEqual([1, 3]);
  });

  it('only the call that it came with, if the server says so', () => {
    const fixture = withCalls();
    fixture.router.onMessages([readMessage(elicitation)], [3]);
    expect(marked(fixture)).toEqual([3]);
  });

  it('the call on whose stream it goes, and all that can ask, if the server does not say so', () => {
    const fixture = createFixture();
    fixture.call(2, 'tools/list');
    fixture.receive(elicitation);
    expect(marked(fixture)).toEqual([2]);
  });

  it('none, if it is a ping, which a client answers by itself', () => {
    const fixture = withCalls();
    fixture.router.onMessages([readMessage({ jsonrpc: '2.0', id: 's', method: 'ping' })], [3]);
    expect(marked(fixture)).toEqual([]);
  });
});
