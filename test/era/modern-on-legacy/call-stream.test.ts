import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CallStream } from '../../../src/era/modern-on-legacy/call-stream.ts';
import type { Reason } from '../../../src/protocol/faults.ts';
import type { EventId } from '../../../src/protocol/wire/event-id.ts';
import { createLoggedBatch } from '../../../src/reply/event-batch.ts';
import { faultAnswer, nothing, type Reply } from '../../../src/reply/reply.ts';
import type { SessionHandle } from '../../../src/session/session-handle.ts';

vi.mock('node:timers/promises', () => import('../../support/fake-delay.ts'));
beforeEach(() => void vi.useFakeTimers());
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
