import { describe, expect, it, vi } from 'vitest';
import { Answer, type AnswerOptions, legacyPolicy } from '../../../../src/core/call/answer.ts';
import type { RequestId } from '../../../../src/core/protocol/faults.ts';
import type { EventSink } from '../../../../src/core/reply/reply.ts';
import { answerOnStream, LoggedTarget } from '../../../../src/core/session/outbound/logged-target.ts';
import { SessionLog } from '../../../../src/core/session/outbound/session-log.ts';
import { asMessage } from '../../../support/as-message.ts';
import { acceptsBoth, acceptsSse, createFakeReply } from '../../../support/fake-reply.ts';
import { createCore } from '../core-fixture.ts';

interface Added {
  readonly stream: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
  readonly message: any;
  readonly last: boolean;
  readonly settles?: RequestId | undefined;
  readonly opens?: readonly RequestId[];
}

/** The streams of a session whose log notes what it is given. A message of no bytes is ''. */
function createStreams({ primes = false, maxEventBytes = 300 } = {}) {
  const { session, telemetry } = createCore({ limits: { maxEventBytes } });
  session.protocolVersion = primes ? '2025-11-25' : '2025-06-18';
  const added: Added[] = [];
  const opened: (EventSink | undefined)[] = [];
  const log = new SessionLog(session);
  vi.spyOn(log, 'add').mockImplementation((stream, data, last, { opens, settles } = {}) => {
    const message = data.length === 0 ? '' : JSON.parse(data.toString());
    const ids = opens?.map(({ id }) => id);
    added.push({ stream, message, last, ...(settles !== undefined && { settles }), ...(ids && { opens: ids }) });
  });
  vi.spyOn(log.streams, 'open').mockImplementation((sink) => opened.push(sink) + 4);
  const call = (id: RequestId): void => {
    const answer = createAnswer({ ids: [id] });
    session.calls.add({
      ...{ id, method: 'tools/call', progressToken: undefined, taskId: undefined, request: undefined },
      ...{ answer, activeAt: 0, startedAt: 0 },
    });
  };
  const createAnswer = (options: Partial<AnswerOptions> = {}, accepts = acceptsBoth) =>
    new Answer(new LoggedTarget(session, log), {
      policy: legacyPolicy,
      reply: createFakeReply(accepts),
      ids: [1],
      commitAfterMs: 2 ** 30,
      ...options,
    });
  const adopt = (ids: readonly RequestId[]) => answerOnStream(session, log, 5, { ids });
  return { session, adopt, createAnswer, call, added, opened, telemetry };
}

const response = (id: RequestId, result: unknown = {}) => ({ jsonrpc: '2.0', id, result });
const note = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } };
const tooLarge = (id: RequestId) => ({ id, error: { data: { reason: 'event_too_large' } } });

describe('a stream of an answer in the log', () => {
  it('[P3] opens with the calls that are in flight, and settles each with its response', () => {
    const { createAnswer, call, added } = createStreams();
    for (const id of [1, 2]) call(id);
    const answer = createAnswer({ ids: [1, 2, 3], isBatch: true });
    answer.message(asMessage(note));
    for (const id of [2, 1, 3]) answer.response(asMessage(response(id)));
    expect(added).toEqual([
      { stream: 5, message: note, last: false, opens: [1, 2] },
      { stream: 5, message: response(2), last: false, settles: 2 },
      { stream: 5, message: response(1), last: false, settles: 1 },
      { stream: 5, message: response(3), last: true, settles: 3 },
    ]);
  });

  it('begins with a priming event where the revision has one', () => {
    const { createAnswer, call, added } = createStreams({ primes: true });
    call(1);
    const answer = createAnswer();
    answer.message(asMessage(note));
    expect(added).toEqual([
      { stream: 5, message: '', last: false, opens: [1] },
      { stream: 5, message: note, last: false },
    ]);
  });

  it('[P4] reports a response that was lost with its connection', () => {
    const { createAnswer, added, telemetry } = createStreams();
    const reply = createFakeReply();
    const answer = createAnswer({ reply });
    reply.leave();
    answer.response(asMessage(response(1)));
    expect(added).toEqual([]);
    expect(telemetry.drops).toEqual(['undeliverable']);
  });
});

describe('[P8] a response larger than an event may be', () => {
  const large = response(1, 'x'.repeat(300));

  it('becomes an error for its request in a stream, also if it came before the stream', () => {
    const { createAnswer, added } = createStreams();
    const answer = createAnswer({ ids: [1, 2], isBatch: true });
    answer.response(asMessage(large));
    answer.message(asMessage(note));
    answer.response(asMessage(response(2, 'x'.repeat(300))));
    expect(added.map(({ message }) => message)).toMatchObject([tooLarge(1), note, tooLarge(2)]);
  });

  it('passes at the limit', () => {
    const exact = asMessage(large);
    for (const [maxEventBytes, message] of [
      [exact.text.length, large],
      [exact.text.length - 1, tooLarge(1)],
    ] as const) {
      const { createAnswer, added } = createStreams({ maxEventBytes });
      createAnswer({}, acceptsSse).response(exact);
      expect(added).toMatchObject([{ message, last: true }]);
    }
  });
});

describe('the answer of a call that an earlier owner left', () => {
  it('goes to the stream that it had, message by message, and ends it with the response', () => {
    const { adopt, added } = createStreams();
    const answer = adopt(['a']);
    expect([answer.hasStream, answer.stream]).toEqual([true, 5]);
    answer.message(asMessage(note));
    answer.response(asMessage(response('a')));
    expect(added).toEqual([
      { stream: 5, message: note, last: false },
      { stream: 5, message: response('a'), last: true, settles: 'a' },
    ]);
  });

  it('[P3] of a batch ends with the last missing response, however that comes', () => {
    const { adopt, added } = createStreams();
    const answer = adopt([1, 'two', 3]);
    answer.response(asMessage(response(1)));
    answer.fault('outcome_unknown', undefined, 'two');
    answer.response(asMessage(response(3)));
    expect(added.map(({ settles, last }) => [settles, last])).toEqual([
      [1, false],
      ['two', false],
      [3, true],
    ]);
    expect(added[1]?.message).toMatchObject({ id: 'two', error: { data: { reason: 'outcome_unknown' } } });
  });

  it('is not ended when its session moves again, so that the next owner finds the call pending', () => {
    const { adopt, added } = createStreams();
    adopt([1]).abandon(1);
    expect(added).toEqual([]);
  });
});
