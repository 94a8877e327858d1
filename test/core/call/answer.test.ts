import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AnswerOptions } from '../../../src/core/call/answer.ts';
import type { RequestId } from '../../../src/core/protocol/faults.ts';
import { asMessage } from '../../support/as-message.ts';
import { createFakeAnswer, FakeTarget } from '../../support/fake-answer.ts';
import { acceptsBoth, acceptsJson, acceptsSse, createFakeReply, type FakeReply } from '../../support/fake-reply.ts';

const commitAfterMs = 100;

function createAnswer(reply: FakeReply = createFakeReply(), options: Partial<AnswerOptions> = {}, primes = false) {
  const target = new FakeTarget(primes);
  const answer = createFakeAnswer(1, { reply, target, commitAfterMs, ...options });
  return { target, answer, reply };
}

const response = (id: RequestId, result: unknown = {}) => ({ jsonrpc: '2.0', id, result });
const notification = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } };
const errorOf = (id: RequestId, reason: string) =>
  expect.objectContaining({ id, error: expect.objectContaining({ data: { reason } }) });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('an answer to one request', () => {
  it('is JSON if the response comes first, and stays it', () => {
    const { answer, reply, target } = createAnswer();
    answer.response(asMessage(response(1, { n: 1 })));
    expect(reply.given).toMatchObject({ kind: 'json', text: JSON.stringify(response(1, { n: 1 })) });
    vi.advanceTimersByTime(10 * commitAfterMs);
    expect([target.emitted, target.opened]).toEqual([[], []]);
    expect(answer.hasStream).toBe(false);
  });

  it('becomes a stream by another message that comes first', () => {
    const { answer, reply, target } = createAnswer();
    answer.message(asMessage(notification));
    expect(target.opened).toEqual([{ sink: reply.sink, ids: [1] }]);
    answer.response(asMessage(response(1)));
    expect(target.emitted).toEqual([
      { message: notification, last: false },
      { message: response(1), last: true },
    ]);
  });

  it('becomes a stream when the time is up, stored at once, and not before', () => {
    const { answer, reply, target } = createAnswer(createFakeReply(), {}, true);
    vi.advanceTimersByTime(commitAfterMs - 1);
    expect(reply.given).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(reply.given?.kind).toBe('stream');
    expect(target.flushes).toBe(1);
    answer.response(asMessage(response(1)));
    expect(target.emitted.map(({ message, last }) => [message, last])).toEqual([
      ['', false],
      [response(1), true],
    ]);
  });

  it('tells once that it takes long, also as a stream, and forgets who asked when it is complete or its client leaves', () => {
    const told: string[] = [];
    const asked = (name: string, reply = createFakeReply()) => {
      const { answer } = createAnswer(reply);
      answer.whenLong(5 * commitAfterMs, () => told.push(name));
      return answer;
    };
    asked('long');
    asked('answered').response(asMessage(response(1)));
    const leaving = createFakeReply();
    asked('left', leaving);
    leaving.leave();
    vi.advanceTimersByTime(commitAfterMs / 2);
    expect(vi.getTimerCount()).toBe(2); // to become a stream, and to tell
    vi.advanceTimersByTime(10 * commitAfterMs);
    expect(told).toEqual(['long']);
  });

  it('begins its stream with a priming event only if told so', () => {
    for (const primes of [true, false]) {
      const { answer, target } = createAnswer(createFakeReply(), {}, primes);
      answer.message(asMessage(notification));
      expect(target.emitted.map(({ message }) => message)).toEqual(primes ? ['', notification] : [notification]);
    }
  });

  it('never becomes a stream for a client that accepts only JSON', () => {
    const { answer, reply, target } = createAnswer(createFakeReply(acceptsJson));
    expect(answer.hasStream).toBe(false);
    vi.advanceTimersByTime(100 * commitAfterMs);
    expect(reply.given).toBeUndefined();
    answer.response(asMessage(response(1)));
    expect(reply.given?.kind).toBe('json');
    expect(target.opened).toEqual([]);
  });

  it('is always a stream for a client that accepts only SSE', () => {
    const { answer, reply, target } = createAnswer(createFakeReply(acceptsSse), {}, true);
    answer.response(asMessage(response(1)));
    expect(reply.given?.kind).toBe('stream');
    expect(target.emitted).toEqual([
      { message: '', last: false },
      { message: response(1), last: true },
    ]);
  });

  it.each([
    ['as JSON', acceptsJson],
    ['as a stream', acceptsSse],
  ] as const)('sends its headers %s', (_, accepts) => {
    for (const drops of [false, true]) {
      const { answer, reply } = createAnswer(createFakeReply(accepts), { headers: { 'mcp-session-id': 's' } });
      if (drops) answer.refused(asMessage(response(1)));
      else answer.response(asMessage(response(1)));
      expect(reply.given).toMatchObject({ headers: drops ? undefined : { 'mcp-session-id': 's' } });
    }
  });
});

describe('an answer to a batch', () => {
  const batch = { ids: [1, 'two', 3], isBatch: true };

  it('[R7.02] is one JSON array if only responses come', () => {
    const { answer, reply } = createAnswer(createFakeReply(), batch);
    for (const id of ['two', 3, 1]) {
      expect(reply.given).toBeUndefined();
      answer.response(asMessage(response(id)));
    }
    expect(reply.given).toMatchObject({ kind: 'json', json: [response('two'), response(3), response(1)] });
  });

  it('[R7.02] is an array even of one', () => {
    const { answer, reply } = createAnswer(createFakeReply(), { ids: [1], isBatch: true });
    answer.response(asMessage(response(1)));
    expect(reply.given).toMatchObject({ kind: 'json', json: [response(1)] });
  });

  it('[R7.02] is one stream with the responses so far, if another message comes between', () => {
    const { answer, target } = createAnswer(createFakeReply(), batch);
    answer.response(asMessage(response(1)));
    answer.message(asMessage(notification));
    answer.response(asMessage(response('two')));
    answer.response(asMessage(response(3)));
    expect(target.opened.map(({ ids }) => ids)).toEqual([[1, 'two', 3]]);
    expect(target.emitted.map(({ message, last }) => [message, last])).toEqual([
      [response(1), false],
      [notification, false],
      [response('two'), false],
      [response(3), true],
    ]);
  });

  it('becomes a stream when the time is up', () => {
    const { answer, target } = createAnswer(createFakeReply(), batch);
    answer.response(asMessage(response(1)));
    vi.advanceTimersByTime(commitAfterMs);
    expect(target.emitted.map(({ message }) => message)).toEqual([response(1)]);
  });

  it('has the failures of single requests in it', () => {
    const { answer, reply } = createAnswer(createFakeReply(), batch);
    answer.response(asMessage(response(1)));
    answer.fault('server_busy', undefined, 'two');
    answer.response(asMessage(response(3)));
    expect(reply.given).toMatchObject({
      kind: 'json',
      json: [response(1), errorOf('two', 'server_busy'), response(3)],
    });
  });
});

describe('an answer whose client has gone', () => {
  it('[P4] is lost before the first event: nobody can collect it', () => {
    const { answer, reply, target } = createAnswer();
    reply.leave();
    expect(answer.hasStream).toBe(false);
    vi.advanceTimersByTime(10 * commitAfterMs);
    answer.response(asMessage(response(1)));
    expect([target.opened, target.lost, reply.given]).toEqual([[], 1, undefined]);
  });

  it('[P4] goes on after an event: what follows is kept for the client to collect', async () => {
    const { answer, reply, target } = createAnswer(createFakeReply(), {}, true);
    answer.message(asMessage(notification));
    reply.leave();
    await vi.runAllTimersAsync();
    expect(answer.hasStream).toBe(true);
    answer.response(asMessage(response(1)));
    expect(target.emitted.at(-1)).toEqual({ message: response(1), last: true });
    expect(target.lost).toBe(0);
  });

  it('[P2] [P4] is lost if its stream had no event yet, as before 2025-11-25, where no priming event comes', async () => {
    const { answer, reply, target } = createAnswer();
    vi.advanceTimersByTime(commitAfterMs);
    expect(reply.given?.kind).toBe('stream');
    reply.leave();
    await vi.runAllTimersAsync();
    expect(answer.hasStream).toBe(false);
    answer.response(asMessage(response(1)));
    expect(target.lost).toBe(1);
  });

  it('fails without a word', () => {
    const { answer, reply, target } = createAnswer();
    reply.leave();
    answer.fault('server_exited');
    expect([target.lost, reply.given]).toEqual([1, undefined]);
  });

  it('is not lost by a connection that goes after the answer was sent', () => {
    const { answer, reply, target } = createAnswer();
    answer.response(asMessage(response(1)));
    reply.leave();
    expect([target.lost, reply.given]).toMatchObject([0, { kind: 'json' }]);
    // Of a batch of which a part is still to come: what was collected stays, and the stream takes the rest.
    const part = createAnswer(createFakeReply(), { ids: [1, 2], isBatch: true }, true);
    part.answer.response(asMessage(response(1)));
    part.answer.message(asMessage(notification));
    part.reply.leave();
    part.answer.response(asMessage(response(2)));
    expect(part.target.lost).toBe(0);
  });
});

describe('[P3] a failure', () => {
  it.each([
    ['both', acceptsBoth],
    ['only JSON', acceptsJson],
    ['only SSE', acceptsSse],
  ] as const)('has its HTTP status as long as the answer has not begun, for a client that accepts %s', (_, accepts) => {
    const { answer, reply, target } = createAnswer(createFakeReply(accepts));
    answer.fault('server_exited');
    expect(reply.given).toEqual({ kind: 'fault', reason: 'server_exited', id: 1 });
    vi.advanceTimersByTime(10 * commitAfterMs);
    expect(target.opened).toEqual([]);
  });

  it('is the last event of a stream that has begun', () => {
    const { answer, target } = createAnswer();
    answer.message(asMessage(notification));
    answer.fault('server_exited');
    expect(target.emitted.at(-1)).toEqual({ message: errorOf(1, 'server_exited'), last: true });
    expect(answer.hasStream).toBe(false);
  });

  it('of one of a batch leaves the stream open for the others', () => {
    const { answer, target } = createAnswer(createFakeReply(), { ids: [1, 2], isBatch: true });
    answer.message(asMessage(notification));
    answer.fault('cancelled');
    answer.response(asMessage(response(2)));
    expect(target.emitted.slice(1)).toEqual([
      { message: errorOf(1, 'cancelled'), last: false },
      { message: response(2), last: true },
    ]);
  });
});
