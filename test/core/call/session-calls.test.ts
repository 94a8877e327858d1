import { describe, expect, it } from 'vitest';
import { type Call, SessionCalls } from '../../../src/core/call/session-calls.ts';
import type { RequestId } from '../../../src/core/protocol/faults.ts';
import { createFakeAnswer } from '../../support/fake-answer.ts';
import { readMessage } from '../../support/fake-backend.ts';
import { acceptsBoth, acceptsJson, createFakeReply, type FakeReply } from '../../support/fake-reply.ts';

interface Draft {
  readonly token?: RequestId;
  readonly taskId?: string;
  readonly method?: string;
  readonly reply?: FakeReply;
  /** Its client's connection breaks before anything was sent. */
  readonly isGone?: boolean;
}

function aCall(id: RequestId, draft: Draft = {}): Call {
  const { token, taskId, method = 'tools/call', isGone, reply = createFakeReply(acceptsBoth) } = draft;
  const answer = createFakeAnswer(id, { reply });
  if (isGone) reply.leave();
  return { id, method, progressToken: token, taskId, answer, request: undefined, activeAt: 0, startedAt: 0 };
}

describe('a message that the server sent beside requests', () => {
  const set = (...calls: Call[]): SessionCalls => {
    const all = new SessionCalls();
    for (const call of calls) all.add(call);
    return all;
  };

  it('[R7.10] belongs to them, whatever else is in flight, and of a batch to the newest', () => {
    const [first, second] = [aCall(1), aCall(2)];
    const calls = set(first, second, aCall(3));
    expect(calls.attribute(readMessage(log), true, [1])).toBe(first);
    expect(calls.attribute(readMessage(sampling), false, [1, 2])).toBe(second);
  });

  it('goes where its token says all the same', () => {
    const known = aCall(2, { token: 't' });
    expect(set(aCall(1), known).attribute(readMessage(progress('t')), true, [1])).toBe(known);
  });

  it('goes by the common rule when they are answered', () => {
    expect(set(aCall(1), aCall(2)).attribute(readMessage(log), true, [7])).toBe('get');
  });

  it('goes to the GET stream if it came beside none, where that is open', () => {
    const only = aCall(1);
    expect(set(only).attribute(readMessage(log), true, [])).toBe('get');
    expect(set(only).attribute(readMessage(log), false, [])).toBe(only);
  });
});

const jsonOnly = (): FakeReply => createFakeReply(acceptsJson);

const log = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1 } };
const sampling = { jsonrpc: '2.0', id: 's1', method: 'sampling/createMessage', params: {} };
const progress = (progressToken: RequestId, taskId?: string) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken, progress: 1, ...(taskId !== undefined && related(taskId)) },
});
const related = (taskId: string) => ({ _meta: { 'io.modelcontextprotocol/related-task': { taskId } } });
const ofTask = (taskId: string) => ({ ...sampling, params: related(taskId) });
const taskStatus = (taskId: string) => ({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: { taskId } });

/** Calls in flight by id, the message, whether a GET stream is open, and where the message belongs. */
type Row = readonly [name: string, calls: Record<string, Draft>, message: object, hasGet: boolean, to: string];

const rows: readonly Row[] = [
  ['progress of a call, among several', { a: { token: 1 }, b: { token: 2 } }, progress(1), false, 'a'],
  ['progress of a call, with a GET stream', { a: { token: 1 }, b: { token: 2 } }, progress(2), true, 'b'],
  ['token 1', { a: { token: 1 }, b: { token: '1' } }, progress(1), true, 'a'],
  ['token "1"', { a: { token: 1 }, b: { token: '1' } }, progress('1'), true, 'b'],
  ['token __proto__', { a: { token: '__proto__' }, b: {} }, progress('__proto__'), true, 'a'],
  ['token 0', { a: { token: 0 }, b: {} }, progress(0), true, 'a'],
  ['the empty token', { a: { token: '' }, b: {} }, progress(''), true, 'a'],
  ['a token of two calls: the newer one', { a: { token: 1 }, b: { token: 1 }, c: {} }, progress(1), true, 'b'],
  [
    'progress of a call that accepts only JSON',
    { a: { token: 1, reply: jsonOnly() }, b: {} },
    progress(1),
    false,
    'get',
  ],
  ['progress of a call whose client has gone', { a: { token: 1, isGone: true }, b: {} }, progress(1), false, 'get'],
  ['a request of a task, by the call that asks about it', { a: { taskId: 't' }, b: {} }, ofTask('t'), true, 'a'],
  ['the status of a task', { a: {}, b: { taskId: 't' }, c: {} }, taskStatus('t'), true, 'b'],
  ['progress of a task, whose first call is answered', { a: { taskId: 't' }, b: {} }, progress(9, 't'), true, 'a'],
  ['a task that no call asks about, two calls', { a: { taskId: 't' }, b: {} }, ofTask('u'), true, 'get'],
  [
    'a task that one waits for, and one asks how it is',
    { a: { taskId: 't', method: 'tasks/result' }, b: { taskId: 't', method: 'tasks/get' } },
    ofTask('t'),
    true,
    'a',
  ],
  ['a task that is only asked how it is', { a: { taskId: 't', method: 'tasks/get' } }, taskStatus('t'), true, 'get'],
  ['the same, without a GET stream', { a: { taskId: 't', method: 'tasks/get' } }, taskStatus('t'), false, 'a'],
  ['one call beside one that asks how a task is', { a: {}, b: { method: 'tasks/get' } }, log, true, 'a'],
  ['one call', { a: {} }, log, false, 'a'],
  ['one call, with a GET stream', { a: {} }, log, true, 'a'],
  ['a request of the server, one call', { a: {} }, sampling, true, 'a'],
  ['several calls, with a GET stream', { a: {}, b: {} }, log, true, 'get'],
  ['several calls, without a GET stream: the newest', { a: {}, b: {}, c: {} }, log, false, 'c'],
  ['no call', {}, log, true, 'get'],
  ['no call and no GET stream', {}, log, false, 'get'],
  ['one call that accepts only JSON', { a: { reply: jsonOnly() } }, log, false, 'get'],
  ['one call with a stream beside one with JSON', { a: {}, b: { reply: jsonOnly() } }, log, true, 'a'],
  ['one call whose client has gone', { a: { isGone: true } }, sampling, false, 'get'],
  ['one call beside one whose client has gone', { a: {}, b: { isGone: true } }, log, true, 'a'],
  ['the newest call that has a stream', { a: {}, b: {}, c: { isGone: true } }, log, false, 'b'],
];

describe('[R7.09] [R7.10] P2: where a message of the server belongs', () => {
  it.each(rows)('%s', (_, drafts, message, hasGet, to) => {
    const calls = new SessionCalls();
    for (const [id, draft] of Object.entries(drafts)) calls.add(aCall(id, draft));
    const destination = calls.attribute(readMessage(message), hasGet);
    expect(destination === 'get' ? 'get' : destination.id).toBe(to);
  });

  it('is the stream of a call that has become one and whose client has gone since: it can be collected there', async () => {
    const reply = createFakeReply();
    const calls = new SessionCalls();
    const call = aCall(1, { reply });
    calls.add(call);
    call.answer.message(readMessage(log));
    reply.leave();
    await Promise.resolve();
    expect(calls.attribute(readMessage(sampling), true)).toBe(call);
  });

  it('is no longer a call that was answered', () => {
    const calls = new SessionCalls();
    calls.add(aCall(1, { token: 't' }));
    calls.add(aCall(2));
    calls.take(1);
    const destination = calls.attribute(readMessage(log), true);
    expect(destination).toMatchObject({ id: 2 });
  });

  it('stays the newer one of two calls with the same token when the older one is answered', () => {
    const calls = new SessionCalls();
    for (const id of [1, 2, 3]) calls.add(aCall(id, id < 3 ? { token: 't' } : {}));
    calls.take(1);
    expect(calls.attribute(readMessage(progress('t')), true)).toMatchObject({ id: 2 });
  });
});

describe('the calls in flight', () => {
  it('[R7.03] are told apart by the type of their ids', () => {
    const calls = new SessionCalls();
    calls.add(aCall(1));
    expect([calls.has(1), calls.has('1')]).toEqual([true, false]);
    expect(calls.take('1')).toBeUndefined();
    calls.add(aCall('1'));
    expect([calls.take('1')?.id, calls.take(1)?.id, calls.size]).toEqual(['1', 1, 0]);
  });

  it('are taken out once', () => {
    const calls = new SessionCalls();
    calls.add(aCall(1));
    expect([calls.take(1)?.id, calls.take(1)]).toEqual([1, undefined]);
  });

  it('tell when the last one is answered', async () => {
    const calls = new SessionCalls();
    await calls.whenEmpty();
    calls.add(aCall(1));
    calls.add(aCall(2));
    let isEmpty = false;
    const whenEmpty = calls.whenEmpty().then(() => {
      isEmpty = true;
    });
    calls.take(1);
    await Promise.resolve();
    expect(isEmpty).toBe(false);
    calls.take(2);
    await whenEmpty;
  });

  it('[P2] have no late progress but that of calls that the gateway has ended, or of all once they are taken out', () => {
    const calls = new SessionCalls();
    calls.add(aCall(1, { token: 'ended' }));
    calls.add(aCall(2, { token: 'running' }));
    calls.add(aCall(3, { token: 'answered' }));
    calls.retire(1);
    calls.take(3);
    const late = () =>
      ['ended', 'running', 'answered', 'unknown'].filter((token) => calls.isLate(readMessage(progress(token))));
    expect(late()).toEqual(['ended']);
    calls.takeAll();
    expect(late()).toEqual(['ended', 'running', 'answered', 'unknown']);
    expect(calls.isLate(readMessage(log))).toBe(false);
  });

  it('are all taken out in the order in which they came', () => {
    const calls = new SessionCalls();
    for (const id of ['b', 1, 'a']) calls.add(aCall(id));
    expect(calls.takeAll().map(({ id }) => id)).toEqual(['b', 1, 'a']);
    expect(calls.size).toBe(0);
  });
});
