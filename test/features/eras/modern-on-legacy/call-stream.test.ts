import { setImmediate as nextTurn } from 'node:timers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import { type Message, readGatewayMessage } from '../../../../src/core/protocol/message/message.ts';
import type { EventId } from '../../../../src/core/protocol/wire/event-id.ts';
import { createLoggedBatch } from '../../../../src/core/reply/event-batch.ts';
import { accepted, type EventSink, faultAnswer, nothing, type Reply } from '../../../../src/core/reply/reply.ts';
import type { SessionHandle } from '../../../../src/core/session/session-handle.ts';
import { ask, CallStream } from '../../../../src/features/eras/modern-on-legacy/call-stream.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const begin: EventId = { stream: 1, epoch: 5, seq: 1 };
const progress = Buffer.from('{"jsonrpc":"2.0","method":"notifications/progress"}');
const response = Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}');

/** A stream of a call; `onListen` is the session, whenever it is asked for the stream. */
function createStream(onListen: (reply: Reply, nth: number, after: EventId | undefined) => void) {
  const heard: string[] = [];
  const failed: Reason[] = [];
  let asked = 0;
  const handle: SessionHandle = {
    post: () => undefined,
    remove: () => undefined,
    listen: (after, reply) => onListen(reply, ++asked, after),
  };
  const stream = new CallStream({
    forwarded: undefined,
    find: async () => handle,
    message: ({ text, kind }) => {
      heard.push(text.toString());
      if (kind === 'response') stream.stop();
    },
    failed: (reason) => {
      failed.push(reason);
      stream.stop();
    },
  });
  stream.listen(handle, begin);
  return { stream, heard, failed, asked: () => asked };
}

describe('the stream of a group’s call', () => {
  it('[P3] fails after several attempts if no session resumes it', async () => {
    const { failed, asked } = createStream((reply) => reply.answer(nothing));
    await vi.advanceTimersByTimeAsync(60_000);
    expect([failed, asked()]).toEqual([['outcome_unknown'], 6]);
  });

  it('is resumed as often as sessions accept that', async () => {
    const { heard, failed } = createStream((reply, nth) => {
      const sink = reply.stream();
      if (nth === 50) sink.write(createLoggedBatch([{ stream: 1, epoch: 5, seq: 2, data: response }], 1));
      sink.end();
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect([heard, failed]).toEqual([[response.toString()], []]);
  });

  it('is resumed after its newest event', async () => {
    const seen: (number | undefined)[] = [];
    const { stream } = createStream((reply, nth, after) => {
      seen.push(after?.seq);
      const sink = reply.stream();
      sink.write(createLoggedBatch([{ stream: 1, epoch: 5, seq: nth + 1, data: progress }], 1));
      if (nth < 3) sink.end();
    });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(seen).toEqual([1, 2, 3]);
    stream.stop();
  });

  it.each(['unknown_session', 'unknown_event_id', 'bad_event_id'] as const)(
    '[P3] fails with an unknown outcome if the session says %s',
    async (reason) => {
      const { failed } = createStream((reply) => reply.answer(faultAnswer(reason, null)));
      expect(failed).toEqual(['outcome_unknown']);
    },
  );

  it('delivers nothing more once it was stopped', async () => {
    const { stream, heard, failed, asked } = createStream((reply) => reply.stream().end());
    stream.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([heard, failed, asked()]).toEqual([[], [], 1]);
  });
});

it.each(['owner_unreachable', 'store_unavailable', 'draining'] as const)(
  '[P7] a call that runs is not said to have been refused if its stream cannot be resumed: %s',
  async (reason) => {
    const { failed } = createStream((reply) => reply.answer(faultAnswer(reason, null)));
    expect(failed).toEqual(['outcome_unknown']);
  },
);

describe('what a session sends the gateway as its client', () => {
  /** A stream that is resumed, and its sink. */
  function open(
    onMessage: (message: Message, position: { before?: EventId; at?: EventId }) => void,
    onEnd?: () => void,
  ) {
    let sink: EventSink | undefined;
    const stream = new CallStream({
      forwarded: undefined,
      find: async () => {
        onEnd?.();
        return 'unknown_session';
      },
      message: onMessage as never,
      failed: () => stream.stop(),
    });
    const listen = (_: unknown, reply: Reply): void => {
      sink = reply.stream();
    };
    stream.listen({ listen } as SessionHandle, begin);
    return { stream, sink: sink as unknown as EventSink };
  }
  const event = (seq: number, text: string) => ({ stream: 1, epoch: 5, seq, data: Buffer.from(text) });

  it('[G-06] [P8] is read in turns of its own if it is large, and the events behind it wait', async () => {
    const heard: string[] = [];
    const { stream, sink } = open(({ id, method }, { before, at }) => {
      heard.push(`${method ?? id} ${before?.seq} ${at?.seq}`);
    });
    let drains = 0;
    sink.onDrain(() => {
      drains += 1;
    });
    expect(sink.write(createLoggedBatch([event(2, '{"jsonrpc":"2.0","method":"first"}')], 1))).toBe(true);
    expect(heard).toEqual(['first 1 2']);
    const large = event(3, `{"jsonrpc":"2.0","id":7,"result":{"a":[${'0,'.repeat(1_000_000)}0]}}`);
    expect(sink.write(createLoggedBatch([large, event(4, '{"jsonrpc":"2.0","method":"last"}')], 1))).toBe(false);
    let turns = 0;
    for (; heard.length < 3; turns += 1) await new Promise((resolve) => nextTurn(resolve));
    expect(heard).toEqual(['first 1 2', '7 2 3', 'last 3 4']);
    expect(turns).toBeGreaterThan(8);
    await new Promise((resolve) => nextTurn(resolve));
    expect([drains, stream.newest?.seq]).toEqual([1, 4]);
    stream.stop();
  });

  it('is not read again if it comes as a message', async () => {
    const heard: Message[] = [];
    const { stream, sink } = open((message) => {
      heard.push(message);
    });
    const message = readGatewayMessage(progress);
    sink.write(createLoggedBatch([{ ...event(2, ''), data: progress, message }], 1));
    expect(heard).toEqual([message]);
    expect(heard[0]).toBe(message);
    const answered = readGatewayMessage(response);
    expect(await ask((reply) => reply.answer({ kind: 'json', text: response, message: answered }))).toBe(answered);
    stream.stop();
  });

  it('ends a request with its response, with a reason, or with nothing', async () => {
    const outcomes = await Promise.all([
      ask((reply) => reply.answer({ kind: 'json', text: response })),
      ask((reply) => {
        const sink = reply.stream();
        sink.write(createLoggedBatch([event(1, String(progress)), event(2, String(response))], 1));
      }),
      ask((reply) => reply.answer(faultAnswer('server_busy', null))),
      ask((reply) => reply.stream().end()),
      ask((reply) => reply.answer(accepted)),
    ]);
    const asText = (outcome: (typeof outcomes)[number]) =>
      typeof outcome === 'object' ? String(outcome.text) : outcome;
    const text = String(response);
    expect(outcomes.map(asText)).toEqual([text, text, 'server_busy', 'outcome_unknown', undefined]);
  });
});
