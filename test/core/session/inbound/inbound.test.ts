import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { CallEvent } from '../../../../src/core/call/call-events.ts';
import type { SessionOptions } from '../../../../src/core/session/session-options.ts';
import { acceptsBoth, acceptsJson } from '../../../support/fake-reply.ts';
import { turn, waitFor } from '../../../support/wait-for.ts';
import { type OneSession, openSession, type SessionInit } from '../one-session.ts';
import { adopt } from '../record/adoption-fixture.ts';
import { never } from '../session-fixture.ts';

/** A session with narrow limits, whose client takes JSON. */
async function open(limits: Partial<SessionOptions> = {}, init: SessionInit = {}) {
  const narrow = { maxEventBytes: 1_000, maxCalls: 3, graceMs: 10, maxQueuedBytes: 2_000, ...limits };
  const one = await openSession({ limits: narrow, server: { onBackendExit: 'restore' }, ...init });
  const post: OneSession['post'] = (messages, posting) => one.post(messages, { accepts: acceptsJson, ...posting });
  const answer = (id: unknown, result: object = {}): void => one.backend.says({ jsonrpc: '2.0', id, result });
  return { one, session: one.session, backend: one.backend, post, answer };
}

/** Batches are of an older revision. */
const older: SessionInit = { handshake: { protocolVersion: '2025-03-26' } };

const request = (id: string | number, method = 'tools/call', params: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});
const note = (method = 'notifications/x', params: object = {}) => ({ jsonrpc: '2.0', method, params });
const fault = (reason: string, id: string | number | null) => ({ kind: 'fault', reason, id });

describe('messages of a client in a session', () => {
  it('go to the server in order, where requests wait for an answer and others are accepted at once', async () => {
    const { one, post, session } = await open();
    const [first, second] = [post([request(1)]), post([note()])];
    post([request('1')]);
    expect(one.sent()).toEqual([request(1), note(), request('1')]);
    expect([first.given, second.given, session.snapshot.calls]).toEqual([undefined, { kind: 'accepted' }, 2]);
  });

  it('[P3] with an id twice in a batch are refused as a whole', async () => {
    const { one, post, session } = await open({}, older);
    expect(post([request(5), request(5)], { isBatch: true }).given).toEqual(fault('duplicate_id', null));
    expect([one.sent(), session.snapshot.calls]).toEqual([[], 0]);
  });

  const numbers = (sent: readonly { id: unknown }[]) => sent.map(({ id }) => id as number);
  const progressing = (id: number | string, progressToken: number | string) =>
    request(id, 'tools/call', { _meta: { progressToken } });

  it('[P2] [P3] with an id in flight get a number at the server, and each answer goes to its own POST', async () => {
    const { one, post, answer } = await open();
    const first = post([request(1)]);
    const second = post([request(1)]);
    const text = post([request('1')]);
    const [id, number, other] = numbers(one.sent());
    expect([id, typeof number, other]).toEqual([1, 'number', '1']);
    expect(number).toBeGreaterThanOrEqual(2 ** 30);
    expect(number).toBeLessThan(2 ** 31);
    for (const each of [number, 1, '1']) answer(each, { each });
    expect(first.given).toMatchObject({ json: { id: 1, result: { each: 1 } } });
    expect(second.given).toMatchObject({ json: { id: 1, result: { each: number } } });
    expect(text.given).toMatchObject({ json: { id: '1', result: { each: '1' } } });
  });

  it.each([
    ['an id', request(2 ** 30 + 7)],
    ['an id as text', request(String(2 ** 30 + 7))],
    ['a progress token', progressing(1, 2 ** 30 + 7)],
  ])('[P2] with %s that can be one of the gateway itself get another number at the server', async (_, message) => {
    const { one, post, answer } = await open();
    const reply = post([message]);
    const [sent] = one.sent();
    expect(String(sent.id)).not.toBe(String(message.id));
    expect(sent.params._meta?.progressToken ?? sent.id).toBe(sent.id);
    answer(sent.id);
    expect(reply.given).toMatchObject({ json: { id: message.id } });
  });

  it('[P3] that fail, fail under the id of the client', async () => {
    const { post, backend } = await open();
    const replies = [post([request(1)]), post([request(1)])];
    backend.ends();
    expect(replies.map(({ given }) => given)).toEqual([fault('server_exited', 1), fault('server_exited', 1)]);
  });

  it('[P2] that cancel an id twice in flight cancel the newest call, then the other one, and no call of the gateway', async () => {
    const { one, post } = await open();
    const cancel = (requestId: number) => post([note('notifications/cancelled', { requestId })]);
    post([request(1)]);
    post([request(1)]);
    const [, number = 0] = numbers(one.sent());
    cancel(1);
    cancel(1);
    cancel(number);
    cancel(77); // answered before
    expect(
      one
        .sent()
        .slice(2)
        .map(({ params }) => params),
    ).toEqual([{ requestId: number }, { requestId: 1 }, { requestId: 77 }]);
  });

  it('[F26] [P8] over the limit of calls in flight are refused as a whole, and accepted again after an answer', async () => {
    const { one, post, answer } = await open({}, older);
    post([request(1), request(2)], { isBatch: true });
    expect(post([request(3), request(4)], { isBatch: true }).given).toEqual(fault('too_many_calls', 3));
    post([request(3)]);
    expect(post([request(4)]).given).toEqual(fault('too_many_calls', 4));
    expect(post([note()]).given).toEqual({ kind: 'accepted' });
    answer(1);
    expect(post([request(4)]).given).toBeUndefined();
    expect(one.sent()).toHaveLength(5);
  });

  it('[P3] that the server does not accept are refused, and nothing of them reaches it', async () => {
    const { one, post, backend, session } = await open();
    backend.answerToSend = 'full';
    expect(post([request(1)]).given).toEqual(fault('server_busy', 1));
    expect(post([note()]).given).toEqual(fault('server_busy', null));
    expect([session.snapshot.calls, one.sent()]).toEqual([0, []]);
  });

  it('[F12] [P3] to a server that is about to report its end go to the next one', async () => {
    const { one, post, backend } = await open();
    backend.answerToSend = 'ended';
    const call = post([request(1)]);
    expect([call.given, post([note()]).given]).toEqual([undefined, { kind: 'accepted' }]);
    backend.ends();
    const restored = await waitFor(() => one.fake.opened[1], { what: 'a new process' });
    expect(await restored.sent.next(({ id }) => id === 1)).toEqual(request(1));
    restored.says({ jsonrpc: '2.0', id: 1, result: {} });
    expect(call.given).toMatchObject({ kind: 'json', json: { id: 1 } });
  });

  it('that answer unknown questions are accepted, dropped and counted', async () => {
    const { one, post, backend } = await open();
    const response = { jsonrpc: '2.0', id: 9, result: { a: 1 } };
    expect(post([response]).given).toEqual({ kind: 'accepted' });
    expect([one.telemetry.drops, one.sent()]).toEqual([['unknown_client_response'], []]);
    one.listen();
    backend.says(request(9, 'roots/list'));
    post([response]);
    expect(one.sent()).toEqual([response]);
  });

  it('[F12] are remembered if a new process needs them, and the record of the session follows', async () => {
    const { one, post, backend } = await open();
    const amended = vi.spyOn(one.store.sessions, 'amend');
    post([note()]);
    expect(amended).not.toHaveBeenCalled();
    post([note('notifications/initialized')]);
    expect(amended).toHaveBeenCalledOnce();
    backend.ends();
    const restored = await waitFor(() => one.fake.opened[1], { what: 'a new process' });
    const told = await restored.sent.next(({ method }) => method.startsWith('notifications/'));
    expect(told).toEqual(note('notifications/initialized'));
  });

  it('[F12] [P8] keep their text only if they may run again', async () => {
    const { post, session } = await open();
    post([request(1, 'tools/call')]);
    post([request(2, 'tools/list')]);
    expect(session.calls.all().map((call) => call.request?.text.toString())).toEqual([
      undefined,
      JSON.stringify(request(2, 'tools/list')),
    ]);
  });
});

describe('a call in a session', () => {
  /** The clock goes on by as much as the test says, and overdue calls are looked for. */
  const clock = ({ session }: Pick<OneSession, 'session'>) => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    return (ms: number): void => {
      vi.advanceTimersByTime(ms);
      session.endOverdue(never, never);
    };
  };

  it('[P3] has its cancellation passed on, and is ended after the grace if its server does not end it', async () => {
    const { one, post } = await open();
    const reply = post([request(1)]);
    for (let n = 0; n < 3; n++) post([note('notifications/cancelled', { requestId: 1 })]);
    expect(one.sent()).toHaveLength(4);
    expect(reply.given).toBeUndefined();
    expect(await reply.answered()).toEqual(fault('cancelled', 1));
  });

  it('of initialize can neither be cancelled, while an unknown call can, nor take too long', async () => {
    const { one, post, session } = await open({ requestIdleMs: 30 }, { handshake: null });
    const pass = clock({ session });
    expect(post([note('notifications/cancelled', { requestId: 0 })]).given).toEqual({ kind: 'accepted' });
    expect(one.sent()).toHaveLength(0);
    post([note('notifications/cancelled', { requestId: 7 })]);
    expect(one.sent()).toHaveLength(1);
    pass(100);
    expect([one.opening.given, session.snapshot.calls]).toEqual([undefined, 1]);
  });

  const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 't', progress: 1 } };
  const reporting = request('b', 'tools/call', { _meta: { progressToken: 't' } });

  it('[F13] [P3] ends after too long without progress and is cancelled at its server', async () => {
    const { one, post, backend, session } = await open({ requestIdleMs: 30 });
    const pass = clock({ session });
    const [silent, busy] = [post([request('s')]), post([reporting])];
    pass(20);
    backend.says(progress);
    pass(9);
    expect(silent.given).toBeUndefined();
    pass(1);
    expect([silent.given, busy.given]).toEqual([fault('request_timeout', 's'), undefined]);
    expect(one.sent().slice(2)).toEqual([
      note('notifications/cancelled', { requestId: 's', reason: expect.any(String) }),
    ]);
    pass(20);
    expect([busy.given, session.snapshot.calls]).toEqual([fault('request_timeout', 'b'), 0]);
  });

  it('[F13] [P3] may be silent while it waits for an unfinished task, up to its total time', async () => {
    const { post, backend, session } = await open({ requestIdleMs: 30, requestTotalMs: 60 });
    const pass = clock({ session });
    backend.says(note('notifications/tasks/status', { taskId: 't', status: 'working' }));
    const [waiting, other] = [
      post([request(1, 'tasks/result', { taskId: 't' })]),
      post([request(2, 'tasks/result', { taskId: 'u' })]),
    ];
    pass(30);
    expect([waiting.given, other.given]).toEqual([undefined, fault('request_timeout', 2)]);
    pass(30);
    expect(waiting.given).toEqual(fault('request_timeout', 1));
  });

  it('[F13] [P3] ends after its total time, even with progress', async () => {
    const { post, backend, session } = await open({ requestIdleMs: 20, requestTotalMs: 30 });
    const pass = clock({ session });
    const reply = post([reporting]);
    for (const ms of [15, 14]) {
      pass(ms);
      backend.says(progress);
    }
    expect(reply.given).toBeUndefined();
    pass(1);
    expect([reply.given, session.snapshot.calls]).toEqual([fault('request_timeout', 'b'), 0]);
  });

  it('[P2] that the gateway has ended leaves a late answer, which is not that of the next one with its id', async () => {
    const { one, post, answer, session } = await open({ requestIdleMs: 30 });
    const pass = clock({ session });
    const first = post([request(1)]);
    pass(30);
    const second = post([request(1)]);
    answer(1, { late: true });
    expect([first.given, second.given]).toEqual([fault('request_timeout', 1), undefined]);
    answer(one.sent().at(-1).id, { late: false });
    expect(second.given).toMatchObject({ json: { id: 1, result: { late: false } } });
  });

  it('[P3] does not fail after its answer, nor does the next one with its id', async () => {
    const { post, answer, session } = await open();
    const pass = clock({ session });
    const first = post([request(1)]);
    post([note('notifications/cancelled', { requestId: 1 })]);
    answer(1);
    const second = post([request(1)]);
    pass(100); // longer than the grace of the cancelled call
    expect([first.given, second.given]).toMatchObject([{ kind: 'json' }, undefined]);
    expect(session.snapshot.calls).toBe(1);
  });
});

describe('calls that an earlier owner left unanswered', () => {
  it('are observed like calls of this owner', async () => {
    const ended: CallEvent[] = [];
    await adopt({
      events: [[4, note()]],
      calls: [{ stream: 4, message: request(1), isKept: false }],
      telemetry: { wantsNames: false, emit: (event) => void ended.push(event) },
    });
    await turn();
    const outcome = { kind: 'fault', reason: 'outcome_unknown' };
    expect(ended.filter(({ type }) => type === 'call-ended')).toMatchObject([{ method: 'tools/call', outcome }]);
  });
});

describe('messages that are retried because their connection was lost', () => {
  const list = (id: string | number) => request(id, 'tools/list');

  it('[P3] are answered on the stream that the answer has become', async () => {
    const { one, post, backend, answer } = await open();
    const lost = post([request(1)], { accepts: acceptsBoth });
    backend.says({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } });
    await lost.answered();
    lost.sink.leave();
    const again = post([request(1)], { again: true, accepts: acceptsBoth });
    await again.answered();
    answer(1);
    await again.sink.events.next(({ data }) => data?.includes('"result"') === true);
    expect(one.sent()).toEqual([request(1)]);
  });

  it('[P3] do not join a stream that was lost before its first event: what only reads runs again, under its own id', async () => {
    const { one, post, answer } = await open({ streamAfterMs: 0 }, { handshake: { protocolVersion: '2025-06-18' } });
    const lost = post([list(1)], { accepts: acceptsBoth });
    await lost.answered();
    lost.leave();
    const again = post([list(1)], { again: true });
    const [, { id: newId }] = one.sent();
    answer(1);
    expect(again.given).toBeUndefined();
    answer(newId);
    expect(again.given).toMatchObject({ kind: 'json', json: { id: 1 } });
  });

  it('[P3] run again if they are harmless, and otherwise have an unknown outcome, whether they run or not', async () => {
    const { one, post, session } = await open({}, older);
    expect(post([request(1)], { again: true }).given).toEqual(fault('outcome_unknown', 1));
    expect(post([list(1), request(2)], { isBatch: true, again: true }).given).toEqual(fault('outcome_unknown', 1));
    expect(one.sent()).toEqual([]);
    expect(post([list(1)], { again: true }).given).toBeUndefined();
    expect(post([note()], { again: true }).given).toEqual({ kind: 'accepted' });
    expect([one.sent(), session.snapshot.calls]).toEqual([[list(1), note()], 1]);
    post([request(3)]).leave();
    expect(post([request(3)], { again: true }).given).toEqual(fault('outcome_unknown', 3));
    expect(one.sent()).toHaveLength(3);
  });
});
