import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LegacyAnswer, type LegacyAnswerHost, type LegacyAnswerOptions } from '../../src/call/legacy-answer.ts';
import type { RequestId } from '../../src/protocol/faults.ts';
import type { EventSink } from '../../src/reply/reply.ts';
import { asMessage } from '../support/as-message.ts';
import { acceptsBoth, acceptsJson, acceptsSse, createFakeReply, type FakeReply } from '../support/fake-reply.ts';

const upgradeAfterMs = 100;

/** An event that an answer added to its stream: the parsed message, or '' for a priming event. */
interface Emitted {
  readonly stream: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
  readonly message: any;
  readonly last: boolean;
}

function createHost() {
  const emitted: Emitted[] = [];
  const opened: { sink: EventSink | undefined; ids: readonly RequestId[] }[] = [];
  let undeliverable = 0;
  let flushes = 0;
  const host: LegacyAnswerHost = {
    openStream(sink, ids) {
      opened.push({ sink, ids });
      return opened.length;
    },
    emit(stream, text, last) {
      emitted.push({ stream, message: text.length === 0 ? '' : JSON.parse(text.toString()), last });
    },
    flush() {
      flushes += 1;
    },
    onUndeliverable() {
      undeliverable += 1;
    },
  };
  return { host, emitted, opened, undeliverable: () => undeliverable, flushes: () => flushes };
}

function createAnswer(reply: FakeReply = createFakeReply(), options: Partial<LegacyAnswerOptions> = {}) {
  const fixture = createHost();
  const answer = new LegacyAnswer(fixture.host, {
    reply,
    ids: [1],
    isBatch: false,
    primes: false,
    upgradeAfterMs,
    maxEventBytes: 1_000,
    ...options,
  });
  return { ...fixture, answer, reply };
}

const response = (id: RequestId, result: unknown = {}) => ({ jsonrpc: '2.0', id, result });
const notification = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } };
const errorOf = (id: RequestId, reason: string) =>
  expect.objectContaining({ id, error: expect.objectContaining({ data: { reason } }) });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('an answer to one request', () => {
  it('is JSON if the response comes first, and stays it', () => {
    const { answer, reply, emitted, opened } = createAnswer();
    answer.response(asMessage(response(1, { n: 1 })));
    expect(reply.given).toMatchObject({ kind: 'json', text: JSON.stringify(response(1, { n: 1 })) });
    vi.advanceTimersByTime(10 * upgradeAfterMs);
    expect({ emitted, opened }).toEqual({ emitted: [], opened: [] });
    expect(answer.hasStream).toBe(false);
  });

  it('becomes a stream by another message that comes first', () => {
    const { answer, reply, emitted, opened } = createAnswer();
    answer.message(asMessage(notification));
    expect(opened).toEqual([{ sink: reply.sink, ids: [1] }]);
    answer.response(asMessage(response(1)));
    expect(emitted).toEqual([
      { stream: 1, message: notification, last: false },
      { stream: 1, message: response(1), last: true },
    ]);
  });

  it('becomes a stream when the time is up, stored at once, and not before', () => {
    const { answer, reply, emitted, flushes } = createAnswer(createFakeReply(), { primes: true });
    vi.advanceTimersByTime(upgradeAfterMs - 1);
    expect(reply.given).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(reply.given?.kind).toBe('stream');
    expect(flushes()).toBe(1);
    answer.response(asMessage(response(1)));
    expect(emitted.map(({ message, last }) => [message, last])).toEqual([
      ['', false],
      [response(1), true],
    ]);
  });

  it('begins its stream with a priming event only if told so', () => {
    for (const primes of [true, false]) {
      const { answer, emitted } = createAnswer(createFakeReply(), { primes });
      answer.message(asMessage(notification));
      expect(emitted.map(({ message }) => message)).toEqual(primes ? ['', notification] : [notification]);
    }
  });

  it('never becomes a stream for a client that accepts only JSON', () => {
    const { answer, reply, opened } = createAnswer(createFakeReply(acceptsJson));
    expect(answer.hasStream).toBe(false);
    vi.advanceTimersByTime(100 * upgradeAfterMs);
    expect(reply.given).toBeUndefined();
    answer.response(asMessage(response(1)));
    expect(reply.given?.kind).toBe('json');
    expect(opened).toEqual([]);
  });

  it('is always a stream for a client that accepts only SSE', () => {
    const { answer, reply, emitted } = createAnswer(createFakeReply(acceptsSse), { primes: true });
    answer.response(asMessage(response(1)));
    expect(reply.given?.kind).toBe('stream');
    expect(emitted).toEqual([
      { stream: 1, message: '', last: false },
      { stream: 1, message: response(1), last: true },
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
    const { answer, opened, emitted } = createAnswer(createFakeReply(), batch);
    answer.response(asMessage(response(1)));
    answer.message(asMessage(notification));
    answer.response(asMessage(response('two')));
    answer.response(asMessage(response(3)));
    expect(opened.map(({ ids }) => ids)).toEqual([[1, 'two', 3]]);
    expect(emitted.map(({ message, last }) => [message, last])).toEqual([
      [response(1), false],
      [notification, false],
      [response('two'), false],
      [response(3), true],
    ]);
  });

  it('becomes a stream when the time is up', () => {
    const { answer, emitted } = createAnswer(createFakeReply(), batch);
    answer.response(asMessage(response(1)));
    vi.advanceTimersByTime(upgradeAfterMs);
    expect(emitted.map(({ message }) => message)).toEqual([response(1)]);
  });

  it('has the failures of single requests in it', () => {
    const { answer, reply } = createAnswer(createFakeReply(), batch);
    answer.response(asMessage(response(1)));
    answer.fail('two', 'server_busy');
    answer.response(asMessage(response(3)));
    expect(reply.given).toMatchObject({
      kind: 'json',
      json: [response(1), errorOf('two', 'server_busy'), response(3)],
    });
  });

  it('has an oversized response as an error, also if it came before the answer became a stream', () => {
    const { answer, emitted } = createAnswer(createFakeReply(), { ...batch, maxEventBytes: 100 });
    answer.response(asMessage(response(1, 'x'.repeat(100))));
    answer.message(asMessage(notification));
    expect(emitted.map(({ message }) => message)).toEqual([errorOf(1, 'event_too_large'), notification]);
  });
});

describe('an answer whose client has gone', () => {
  it('[P4] is lost before the first event: nobody can collect it', () => {
    const { answer, reply, opened, undeliverable } = createAnswer();
    reply.leave();
    expect(answer.hasStream).toBe(false);
    vi.advanceTimersByTime(10 * upgradeAfterMs);
    answer.response(asMessage(response(1)));
    expect([opened, undeliverable(), reply.given]).toEqual([[], 1, undefined]);
  });

  it('[P4] goes on after an event: what follows is kept for the client to collect', async () => {
    const { answer, reply, emitted, undeliverable } = createAnswer(createFakeReply(), { primes: true });
    answer.message(asMessage(notification));
    reply.leave();
    await vi.runAllTimersAsync();
    expect(answer.hasStream).toBe(true);
    answer.response(asMessage(response(1)));
    expect(emitted.at(-1)).toEqual({ stream: 1, message: response(1), last: true });
    expect(undeliverable()).toBe(0);
  });

  it('[P2] [P4] is lost if its stream had no event yet, as before 2025-11-25, where no priming event comes', async () => {
    const { answer, reply, undeliverable } = createAnswer(createFakeReply(), { primes: false });
    vi.advanceTimersByTime(upgradeAfterMs);
    expect(reply.given?.kind).toBe('stream');
    reply.leave();
    await vi.runAllTimersAsync();
    expect(answer.hasStream).toBe(false);
    answer.response(asMessage(response(1)));
    expect(undeliverable()).toBe(1);
  });

  it('fails without a word', () => {
    const { answer, reply, undeliverable } = createAnswer();
    reply.leave();
    answer.fail(1, 'server_exited');
    expect([undeliverable(), reply.given]).toEqual([1, undefined]);
  });

  it('is not lost by a connection that goes after the answer was sent', () => {
    const { answer, reply, undeliverable } = createAnswer();
    answer.response(asMessage(response(1)));
    reply.leave();
    expect([undeliverable(), reply.given]).toMatchObject([0, { kind: 'json' }]);
    // Of a batch of which a part is still to come: what was collected stays, and the stream takes the rest.
    const part = createAnswer(createFakeReply(), { ids: [1, 2], isBatch: true, primes: true });
    part.answer.response(asMessage(response(1)));
    part.answer.message(asMessage(notification));
    part.reply.leave();
    part.answer.response(asMessage(response(2)));
    expect(part.undeliverable()).toBe(0);
  });
});

describe('[P3] a failure', () => {
  it.each([
    ['both', acceptsBoth],
    ['only JSON', acceptsJson],
    ['only SSE', acceptsSse],
  ] as const)('has its HTTP status as long as the answer has not begun, for a client that accepts %s', (_, accepts) => {
    const { answer, reply, opened } = createAnswer(createFakeReply(accepts));
    answer.fail(1, 'server_exited');
    expect(reply.given).toEqual({ kind: 'fault', reason: 'server_exited', id: 1 });
    vi.advanceTimersByTime(10 * upgradeAfterMs);
    expect(opened).toEqual([]);
  });

  it('is the last event of a stream that has begun', () => {
    const { answer, emitted } = createAnswer();
    answer.message(asMessage(notification));
    answer.fail(1, 'server_exited');
    expect(emitted.at(-1)).toEqual({ stream: 1, message: errorOf(1, 'server_exited'), last: true });
    expect(answer.hasStream).toBe(false);
  });

  it('of one of a batch leaves the stream open for the others', () => {
    const { answer, emitted } = createAnswer(createFakeReply(), { ids: [1, 2], isBatch: true });
    answer.message(asMessage(notification));
    answer.fail(1, 'cancelled');
    answer.response(asMessage(response(2)));
    expect(emitted.slice(1)).toEqual([
      { stream: 1, message: errorOf(1, 'cancelled'), last: false },
      { stream: 1, message: response(2), last: true },
    ]);
  });
});

describe('[P8] a response larger than an event may be', () => {
  const large = response(1, 'x'.repeat(1_000));

  it('becomes an error for its request in a stream', () => {
    const { answer, emitted } = createAnswer();
    answer.message(asMessage(notification));
    answer.response(asMessage(large));
    expect(emitted.at(-1)).toEqual({ stream: 1, message: errorOf(1, 'event_too_large'), last: true });
  });

  it('becomes an error for a client that accepts only SSE', () => {
    const { answer, emitted } = createAnswer(createFakeReply(acceptsSse));
    answer.response(asMessage(large));
    expect(emitted).toEqual([{ stream: 1, message: errorOf(1, 'event_too_large'), last: true }]);
  });

  it('passes as JSON', () => {
    const { answer, reply } = createAnswer();
    answer.response(asMessage(large));
    expect(reply.given).toMatchObject({ kind: 'json', json: large });
  });

  it('passes at the limit', () => {
    const exact = asMessage(large);
    const { answer, emitted } = createAnswer(createFakeReply(acceptsSse), { maxEventBytes: exact.text.length });
    answer.response(exact);
    expect(emitted).toEqual([{ stream: 1, message: large, last: true }]);
  });
});

describe('an answer whose way to the client is lost, of which another instance may ask again', () => {
  const createParted = (accepts = acceptsBoth, options: Partial<LegacyAnswerOptions> = {}) => {
    let isDetached = false;
    const attempt = {
      id: 'in 1',
      previousIds: [],
      get isDetached() {
        return isDetached;
      },
    };
    const reply = Object.assign(createFakeReply(accepts), { attempt });
    const fixture = createAnswer(reply, options);
    isDetached = true;
    reply.leave();
    return fixture;
  };

  it('[P3] is kept as a stream without a connection, with all that is said before it', () => {
    const { answer, reply, emitted, opened, undeliverable } = createParted(acceptsBoth, { primes: true });
    expect([answer.hasStream, answer.isDetached]).toEqual([true, true]);
    answer.message(asMessage(notification));
    answer.response(asMessage(response(1)));
    expect(opened).toEqual([{ sink: undefined, ids: [1] }]);
    expect(emitted.map(({ message, last }) => [message, last])).toEqual([
      ['', false],
      [notification, false],
      [response(1), true],
    ]);
    expect([reply.given, undeliverable(), answer.isDetached]).toEqual([undefined, 0, false]);
  });

  it('is kept also where it would have been JSON, or is an error', () => {
    const answered = createParted();
    answered.answer.response(asMessage(response(1)));
    const failed = createParted();
    expect(failed.answer.fail(1, 'server_busy')).toBe(false);
    expect([answered.emitted, failed.emitted]).toEqual([
      [{ stream: 1, message: response(1), last: true }],
      [{ stream: 1, message: errorOf(1, 'server_busy'), last: true }],
    ]);
  });

  it('is not kept for a client that takes only JSON, nor by one that does not own the session any more', () => {
    const json = createParted(acceptsJson);
    json.answer.response(asMessage(response(1)));
    const abandoned = createParted();
    abandoned.answer.abandon(1);
    expect([json.undeliverable(), json.opened, abandoned.opened]).toEqual([1, [], []]);
  });
});
