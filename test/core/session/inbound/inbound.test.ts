import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { CallEvent, CallTelemetry } from '../../../../src/core/call/call-events.ts';
import type { Call, SessionCalls } from '../../../../src/core/call/session-calls.ts';
import { Inbound } from '../../../../src/core/session/inbound/inbound.ts';
import { Outbound } from '../../../../src/core/session/outbound/outbound.ts';
import { SessionLog } from '../../../../src/core/session/outbound/session-log.ts';
import { ServerLink } from '../../../../src/core/session/server/server-link.ts';
import type { SessionOptions } from '../../../../src/core/session/session-options.ts';
import { createFakeServer, readMessage } from '../../../support/fake-backend.ts';
import { acceptsBoth, acceptsJson, createFakeReply } from '../../../support/fake-reply.ts';
import { createCore } from '../core-fixture.ts';
import { createServer, silentTelemetry } from '../session-fixture.ts';

function createFixture(limits: Partial<SessionOptions> = {}, calls?: CallTelemetry) {
  const fake = createFakeServer();
  const { server } = createServer({ open: fake.open });
  const { session, telemetry } = createCore({
    limits: { maxEventBytes: 1_000, maxCalls: 3, graceMs: 10, maxQueuedBytes: 2_000, ...limits },
    parts: { server, ...(calls && { telemetry: { ...silentTelemetry, calls } }) },
  });
  const changes: Buffer[] = [];
  const { client, serverRequests } = session;
  vi.spyOn(session, 'amendRecord').mockImplementation(() => void changes.push(client.save().clientSaid));
  const upstream = new ServerLink(session);
  const log = new SessionLog(session);
  const outbound = new Outbound(session, upstream, log);
  upstream.open();
  onTestFinished(async () => {
    for (const call of session.calls.takeAll()) call.answer.fault('session_ended', undefined, call.id);
    await upstream.close();
  });
  const joined: number[] = [];
  vi.spyOn(log.streams, 'open').mockReturnValue(4);
  vi.spyOn(log.streams, 'join').mockImplementation((stream, reply) => {
    joined.push(stream);
    reply.stream();
  });
  const inbound = new Inbound(session, upstream, log, outbound);
  const post = (messages: readonly unknown[], isBatch = false, again = false, accepts = acceptsJson) => {
    const reply = createFakeReply(accepts);
    inbound.post({ messages: messages.map(readMessage), isBatch, again }, reply);
    return reply;
  };
  const { drops: dropped } = telemetry;
  return {
    inbound,
    outbound,
    calls: session.calls,
    serverRequests,
    client,
    dropped,
    changes,
    joined,
    backend: fake.backend,
    post,
  };
}

const request = (id: string | number, method = 'tools/call', params: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});
const note = (method = 'notifications/x', params: object = {}) => ({ jsonrpc: '2.0', method, params });
const fault = (reason: string, id: string | number | null) => ({ kind: 'fault', reason, id });

describe('messages of a client in a session', () => {
  it('go to the server in order, where requests wait for an answer and others are accepted at once', () => {
    const { calls, backend, post } = createFixture();
    const [first, second] = [post([request(1)]), post([note()])];
    post([request('1')]);
    expect(backend.sent.items).toEqual([request(1), note(), request('1')]);
    expect([first.given, second.given, calls.size]).toEqual([undefined, { kind: 'accepted' }, 2]);
  });

  it('[P3] with an id twice in a batch are refused as a whole', () => {
    const { calls, backend, post } = createFixture();
    expect(post([request(5), request(5)], true).given).toEqual(fault('duplicate_id', null));
    expect([backend.sent.items.length, calls.size]).toEqual([0, 0]);
  });

  const numbers = (sent: readonly object[]) => sent.map((message) => (message as { id?: unknown }).id as number);
  const progressing = (id: number | string, progressToken: number | string) =>
    request(id, 'tools/call', { _meta: { progressToken } });

  it('[P2] [P3] with an id in flight get a number at the server, and each answer goes to its own POST', () => {
    const { calls, backend, post } = createFixture();
    const first = post([request(1)]);
    const second = post([request(1)]);
    const text = post([request('1')]);
    const [one, number, other] = numbers(backend.sent.items);
    expect([one, typeof number, other]).toEqual([1, 'number', '1']);
    expect(number).toBeGreaterThanOrEqual(2 ** 30);
    expect(number).toBeLessThan(2 ** 31);
    for (const id of [number as number, 1, '1'])
      calls.take(id)?.answer.response(readMessage({ jsonrpc: '2.0', id, result: { id } }));
    expect(first.given).toMatchObject({ json: { id: 1, result: { id: 1 } } });
    expect(second.given).toMatchObject({ json: { id: 1, result: { id: number } } });
    expect(text.given).toMatchObject({ json: { id: '1', result: { id: '1' } } });
  });

  it.each([
    ['an id', request(2 ** 30 + 7)],
    ['an id as text', request(String(2 ** 30 + 7))],
    ['a progress token', progressing(1, 2 ** 30 + 7)],
  ])('[P2] with %s that can be one of the gateway itself get another number at the server', (_, message) => {
    const { calls, backend, post } = createFixture();
    const reply = post([message]);
    const [number] = numbers(backend.sent.items) as [number];
    expect(String(number)).not.toBe(String(message.id));
    const [sent] = backend.sent.items as [{ params: { _meta?: { progressToken: unknown } } }];
    expect(sent.params._meta?.progressToken ?? number).toBe(number);
    calls.take(number)?.answer.response(readMessage({ jsonrpc: '2.0', id: number, result: {} }));
    expect(reply.given).toMatchObject({ json: { id: message.id } });
  });

  it('[P2] with the id of a call that the gateway has ended get a number, so that its late answer is not theirs', () => {
    const { calls, outbound, backend, post } = createFixture();
    post([request(1)]);
    outbound.fail(calls.get(1) as Call, 'request_timeout');
    const reply = post([request(1)]);
    expect(calls.take(1)).toBeUndefined(); // a late answer
    const [, number] = numbers(backend.sent.items) as [number, number];
    calls.take(number)?.answer.response(readMessage({ jsonrpc: '2.0', id: number, result: {} }));
    expect(reply.given).toMatchObject({ json: { id: 1 } });
  });

  it('[P3] that fail, fail under the id of the client', () => {
    const { calls, outbound, backend, post } = createFixture();
    post([request(1)]);
    const second = post([request(1)]);
    const [, number] = numbers(backend.sent.items) as [number, number];
    outbound.fail(calls.get(number) as Call, 'server_exited');
    expect(second.given).toEqual(fault('server_exited', 1));
  });

  it('[P2] that cancel an id twice in flight cancel the newest call, then the other one, and no call of the gateway', () => {
    const { backend, post } = createFixture();
    const cancel = (requestId: number) => post([note('notifications/cancelled', { requestId })]);
    post([request(1)]);
    post([request(1)]);
    const [, number] = numbers(backend.sent.items) as [number, number];
    const cancelled = () => backend.sent.items.slice(2).map((each) => (each as { params?: object }).params);
    cancel(1);
    cancel(1);
    cancel(number);
    cancel(77); // answered before
    expect(cancelled()).toEqual([{ requestId: number }, { requestId: 1 }, { requestId: 77 }]);
  });

  it('[F26] [P8] over the limit of calls in flight are refused as a whole, and accepted again after an answer', () => {
    const { calls, backend, post } = createFixture();
    post([request(1), request(2)], true);
    expect(post([request(3), request(4)], true).given).toEqual(fault('too_many_calls', 3));
    post([request(3)]);
    expect(post([request(4)]).given).toEqual(fault('too_many_calls', 4));
    expect(post([note()]).given).toEqual({ kind: 'accepted' });
    calls.take(1);
    expect(post([request(4)]).given).toBeUndefined();
    expect(backend.sent.items).toHaveLength(5);
  });

  it('[P3] that the server does not accept are refused, and nothing of them reaches it', () => {
    const { calls, backend, post } = createFixture();
    backend.answerToSend = 'full';
    expect(post([request(1)]).given).toEqual(fault('server_busy', 1));
    expect(post([note()]).given).toEqual(fault('server_busy', null));
    expect([calls.size, backend.sent.items]).toEqual([0, []]);
  });

  it('[F12] [P3] to a server that is about to report its end wait for that report', () => {
    const { calls, backend, post } = createFixture();
    backend.answerToSend = 'ended';
    expect([post([request(1)]).given, post([note()]).given]).toEqual([undefined, { kind: 'accepted' }]);
    expect(calls.size).toBe(1);
  });

  it('that answer unknown questions are accepted, dropped and counted', () => {
    const { backend, dropped, post, serverRequests } = createFixture();
    expect(post([{ jsonrpc: '2.0', id: 9, result: {} }]).given).toEqual({ kind: 'accepted' });
    expect([dropped, backend.sent.items]).toEqual([['unknown_client_response'], []]);
    serverRequests.add(readMessage(request(9, 'roots/list')), '', 'get');
    post([{ jsonrpc: '2.0', id: 9, result: { a: 1 } }]);
    expect(backend.sent.items).toEqual([{ jsonrpc: '2.0', id: 9, result: { a: 1 } }]);
  });

  it('[F12] are remembered if a new process needs them', () => {
    const { client, changes, post } = createFixture();
    post([note()]);
    expect(changes).toEqual([]);
    post([note('notifications/initialized')]);
    expect(changes).toEqual([client.save().clientSaid]); // it is told, after the change, so that the record follows
    expect(client.replay().messages.map(({ method }) => method)).toEqual(['notifications/initialized']);
  });

  it('[F12] [P8] keep their text only if they may run again', () => {
    const { calls, post } = createFixture();
    post([request(1, 'tools/call'), request(2, 'tools/list')], true);
    expect([calls.get(1)?.request, calls.get(2)?.request?.text.toString()]).toEqual([
      undefined,
      JSON.stringify(request(2, 'tools/list')),
    ]);
  });
});

/** The call of a client's `initialize`, which `SessionOpening` adds. */
const openingCall = (id: string | number): Call => {
  const now = performance.now();
  const [progressToken, taskId, request] = [undefined, undefined, undefined];
  const answer = { fault: () => undefined } as unknown as Call['answer']; // only the end of the test answers it
  return { id, method: 'initialize', progressToken, taskId, request, answer, activeAt: now, startedAt: now };
};

describe('a call in a session', () => {
  it('[P3] has its cancellation passed on, and is ended after the grace if its server does not end it', async () => {
    const { backend, post } = createFixture();
    const reply = post([request(1)]);
    for (let n = 0; n < 3; n++) post([note('notifications/cancelled', { requestId: 1 })]);
    expect(backend.sent.items).toHaveLength(4);
    expect(reply.given).toBeUndefined();
    expect(await reply.answered()).toEqual(fault('cancelled', 1));
  });

  it('of initialize cannot be cancelled, while an unknown call can', () => {
    const { backend, calls, post } = createFixture();
    calls.add(openingCall(0));
    expect(post([note('notifications/cancelled', { requestId: 0 })]).given).toEqual({ kind: 'accepted' });
    expect(backend.sent.items).toHaveLength(0);
    post([note('notifications/cancelled', { requestId: 7 })]);
    expect(backend.sent.items).toHaveLength(1);
  });

  /** The clock goes on by as much as the test says, and overdue calls are looked for. */
  const clock = (inbound: Inbound) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    return (ms: number): void => {
      vi.advanceTimersByTime(ms);
      inbound.endOverdue();
    };
  };

  it('[F13] [P3] ends after too long without progress and is cancelled at its server, unless it is initialize', () => {
    const { inbound, calls, backend, post } = createFixture({ requestIdleMs: 30, maxCalls: 10 });
    const pass = clock(inbound);
    const [silent, busy] = [
      post([request('s')]),
      post([request('b', 'tools/call', { _meta: { progressToken: 't' } })]),
    ];
    calls.add(openingCall('i'));
    pass(20);
    calls.noteProgress('t');
    pass(9);
    expect(silent.given).toBeUndefined();
    pass(1);
    expect([silent.given, busy.given]).toEqual([fault('request_timeout', 's'), undefined]);
    const cancelled = backend.sent.items.slice(2);
    expect(cancelled).toEqual([note('notifications/cancelled', { requestId: 's', reason: expect.any(String) })]);
    pass(20);
    expect(busy.given).toEqual(fault('request_timeout', 'b'));
    expect([calls.has('b'), calls.has('i')]).toEqual([false, true]);
  });

  it('[F13] [P3] may be silent while it waits for an unfinished task, up to its total time', () => {
    const { inbound, calls, post } = createFixture({ requestIdleMs: 30, requestTotalMs: 60 });
    const pass = clock(inbound);
    calls.tasks.update(readMessage(note('notifications/tasks/status', { taskId: 't', status: 'working' })));
    const [waiting, other] = [
      post([request(1, 'tasks/result', { taskId: 't' })]),
      post([request(2, 'tasks/result', { taskId: 'u' })]),
    ];
    pass(30);
    expect([waiting.given, other.given]).toEqual([undefined, fault('request_timeout', 2)]);
    pass(30);
    expect(waiting.given).toEqual(fault('request_timeout', 1));
  });

  it('[F13] [P3] ends after its total time, even with progress', () => {
    const { inbound, calls, post } = createFixture({ requestIdleMs: 20, requestTotalMs: 30 });
    const pass = clock(inbound);
    const reply = post([request('b', 'tools/call', { _meta: { progressToken: 't' } })]);
    for (const ms of [15, 14]) {
      pass(ms);
      calls.noteProgress('t');
    }
    expect(reply.given).toBeUndefined();
    pass(1);
    expect([reply.given, calls.size]).toEqual([fault('request_timeout', 'b'), 0]);
  });

  it('[P3] does not fail after its answer, nor does the next one with its id', () => {
    const { outbound, calls, post } = createFixture();
    post([request(1)]);
    const old = calls.take(1);
    const reply = post([request(1)]);
    if (old !== undefined) outbound.fail(old, 'server_exited');
    expect([reply.given, calls.has(1)]).toEqual([undefined, true]);
  });
});

describe('calls that an earlier owner left unanswered', () => {
  it('are observed like calls of this owner', () => {
    const ended: CallEvent[] = [];
    const { inbound, calls } = createFixture({}, { wantsNames: false, emit: (event) => void ended.push(event) });
    const left = {
      text: undefined,
      request: undefined,
      progressToken: undefined,
      taskId: undefined,
      hasAsked: false,
      lastProgress: undefined,
      renumbered: undefined,
    };
    const [call] = inbound.adopt([{ stream: 4, id: 1, method: 'tools/call', ...left }]);
    expect(calls.get(1)).toBe(call);
    call?.report?.failed('outcome_unknown');
    expect(ended).toMatchObject([{ method: 'tools/call', outcome: { kind: 'fault', reason: 'outcome_unknown' } }]);
  });
});

describe('messages that are retried because their connection was lost', () => {
  const list = (id: string | number) => request(id, 'tools/list');
  const answer = (calls: SessionCalls, id: string | number): void =>
    calls.take(id)?.answer.response(readMessage({ jsonrpc: '2.0', id, result: {} }));

  it('[P3] are answered on the stream that the answer has become', () => {
    const { calls, joined, backend, post } = createFixture();
    post([request(1)], false, false, acceptsBoth);
    calls.get(1)?.answer.message(readMessage(note()));
    const again = post([request(1)], false, true, acceptsBoth);
    expect([joined, again.given?.kind, backend.sent.items]).toEqual([[4], 'stream', [request(1)]]);
  });

  it('[P3] do not join a stream that was lost before its first event: what only reads runs again, under its own id', async () => {
    const { calls, joined, backend, post } = createFixture({ streamAfterMs: 0 });
    const lost = post([list(1)], false, false, acceptsBoth);
    await lost.answered();
    lost.leave();
    expect(calls.get(1)?.answer).toMatchObject({ stream: undefined, hasStream: false });
    const again = post([list(1)], false, true);
    const [, { id: newId }] = backend.sent.items as [unknown, { id: string }];
    answer(calls, 1);
    expect(again.given).toBeUndefined();
    answer(calls, newId);
    expect([joined, again.given]).toMatchObject([[], { kind: 'json', json: { id: 1 } }]);
  });

  it('[P3] run again if they are harmless, and otherwise have an unknown outcome, whether they run or not', () => {
    const { calls, backend, post } = createFixture();
    expect(post([request(1)], false, true).given).toEqual(fault('outcome_unknown', 1));
    expect(post([list(1), request(2)], true, true).given).toEqual(fault('outcome_unknown', 1));
    expect(backend.sent.items).toEqual([]);
    expect(post([list(1)], false, true).given).toBeUndefined();
    expect(post([note()], false, true).given).toEqual({ kind: 'accepted' });
    expect([backend.sent.items, calls.size]).toEqual([[list(1), note()], 1]);
    post([request(3)]).leave();
    expect(post([request(3)], false, true).given).toEqual(fault('outcome_unknown', 3));
    expect(backend.sent.items).toHaveLength(3);
  });
});
