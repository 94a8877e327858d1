import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Answer, type AnswerOptions } from '../../../src/core/call/answer.ts';
import { LiveTarget } from '../../../src/core/call/live-target.ts';
import { codeOf } from '../../../src/core/protocol/faults.ts';
import { asMessage } from '../../support/as-message.ts';
import { acceptsBoth, acceptsJson, acceptsSse, createFakeReply } from '../../support/fake-reply.ts';

const result = { jsonrpc: '2.0', id: 'x', result: {} };
const note = (n: number) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { n } });

function answerTo(accepts = acceptsBoth, options: Partial<AnswerOptions> = {}) {
  const reply = createFakeReply(accepts);
  const all = { era: 'modern', reply, ids: ['x'], commitAfterMs: 15_000, ...options } as const;
  const answer = new Answer(new LiveTarget(1_000), all);
  const gone: string[] = [];
  answer.onCancelled((why) => gone.push(why));
  return { reply, answer, gone };
}

describe('the answer to a modern request', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('[R2.04] is JSON if the response comes first, with its status', () => {
    for (const status of [200, 404]) {
      const { reply, answer, gone } = answerTo();
      answer.response(asMessage(result), status);
      expect(reply.given).toMatchObject({ kind: 'json', json: result, status });
      expect(answer.isOver).toBe(true);
      reply.leave();
      expect(gone).toEqual([]);
    }
  });

  it('is over with a fault, so that its client cancels nothing when it leaves', () => {
    const { reply, answer, gone } = answerTo();
    answer.fault('server_busy');
    expect([reply.given?.kind, answer.isOver]).toEqual(['fault', true]);
    reply.leave();
    expect(gone).toEqual([]);
  });

  it('[R2.04] [R2.29] [R2.07] is a stream from the first notification on, without event ids', () => {
    const { reply, answer } = answerTo();
    expect(answer.message(asMessage(note(1)))).toBe(true);
    expect(reply.sink.messages).toEqual([note(1)]);
    answer.message(asMessage(note(2)));
    answer.response(asMessage(result), 404);
    expect(reply.sink.messages).toEqual([note(1), note(2), result]);
    expect(reply.sink.ids).toEqual([]);
    expect(reply.sink.state).toBe('ended');
  });

  it('[R2.24] is no stream before the first message, but after a while it is', () => {
    const { reply, answer } = answerTo();
    vi.advanceTimersByTime(14_999);
    expect(reply.given).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(reply.given?.kind).toBe('stream');
    answer.fault('server_exited');
    expect(reply.sink.messages).toMatchObject([
      { id: 'x', error: { code: -31000, data: { reason: 'server_exited' } } },
    ]);
    expect(reply.sink.state).toBe('ended');
  });

  it('to a client that takes only JSON waits for the response, and notifications are not sent', () => {
    const { reply, answer } = answerTo(acceptsJson);
    vi.advanceTimersByTime(60_000);
    expect(answer.message(asMessage(note(1)))).toBe(false);
    answer.response(asMessage(result), 200);
    expect(reply.given?.kind).toBe('json');
  });

  it('to a client that takes only streams is one, but for an error with a status', () => {
    const streamed = answerTo(acceptsSse);
    streamed.answer.response(asMessage(result), 200);
    expect(streamed.reply.sink.messages).toEqual([result]);
    expect(streamed.reply.sink.state).toBe('ended');
    const refused = answerTo(acceptsSse);
    refused.answer.response(asMessage(result), 400);
    expect(refused.reply.given).toMatchObject({ kind: 'json', status: 400 });
  });

  it('[R9.02] hides the faults of a server behind 200 where a client would take them for the end', () => {
    const { reply, answer } = answerTo(acceptsBoth, { hidesServerErrors: true });
    answer.fault('server_start_failed');
    expect(reply.given).toMatchObject({ kind: 'json', status: 200, json: { id: 'x', error: { code: -31000 } } });
    const refused = answerTo(acceptsBoth, { hidesServerErrors: true });
    refused.answer.fault('header_mismatch');
    expect(refused.reply.given).toMatchObject({ kind: 'fault', reason: 'header_mismatch' });
  });

  it('is given up when its client leaves, before or after it began; what comes then is nowhere', () => {
    const waiting = answerTo();
    waiting.reply.leave();
    expect(waiting.gone).toEqual(['left']);
    const streaming = answerTo();
    streaming.answer.message(asMessage(note(1)));
    streaming.reply.leave();
    expect(streaming.gone).toEqual(['left']);
    for (const { answer, reply } of [waiting, streaming]) {
      expect(answer.isOver).toBe(true);
      expect(answer.message(asMessage(note(2)))).toBe(false);
      answer.response(asMessage(result), 200);
      answer.fault('server_exited');
      expect(reply.given?.kind).not.toBe('json');
    }
    expect(streaming.reply.sink.messages).toEqual([note(1)]);
  });

  it('to a legacy client ends too when the client leaves, but that cancels nothing', () => {
    const { reply, answer, gone } = answerTo(acceptsBoth, { era: 'legacy' });
    answer.message(asMessage(note(1)));
    reply.leave();
    expect([answer.isOver, gone]).toEqual([true, []]);
  });

  it('has the code of an error in the form of its era', () => {
    const codes = (['modern', 'legacy'] as const).map((era) => {
      const { reply, answer } = answerTo(acceptsBoth, { era });
      answer.message(asMessage(note(1)));
      answer.fault('server_exited');
      return reply.sink.messages[1].error.code;
    });
    expect(codes).toEqual([-31000, codeOf('server_exited', 'legacy')]);
    expect(codes[1]).not.toBe(-31000);
  });

  it('[F20] waits for a slow reader, in order, and ends when it has caught up', () => {
    const { reply, answer, gone } = answerTo();
    answer.message(asMessage(note(1)));
    reply.sink.keepsUp = false;
    for (const n of [2, 3]) answer.message(asMessage(note(n)));
    answer.response(asMessage(result), 200);
    expect(reply.sink.messages).toEqual([note(1), note(2)]);
    expect(reply.sink.state).toBe('open');
    reply.sink.drain();
    expect(reply.sink.messages).toEqual([note(1), note(2), note(3), result]);
    expect(reply.sink.state).toBe('ended');
    vi.advanceTimersByTime(60_000);
    expect(gone).toEqual([]);
  });

  it('[F20] is given up if its client leaves with a part unread, even after the response', () => {
    const { reply, answer, gone } = answerTo();
    answer.message(asMessage(note(1)));
    reply.sink.keepsUp = false;
    answer.message(asMessage(note(2)));
    answer.response(asMessage(result), 200);
    reply.leave();
    expect(gone).toEqual(['left']);
    vi.advanceTimersByTime(60_000);
    expect([reply.sink.state, gone]).toEqual(['left', ['left']]);
  });

  it('[F20] [P8] cuts a client that reads nothing for too long', () => {
    const { reply, answer, gone } = answerTo();
    answer.message(asMessage(note(1)));
    reply.sink.keepsUp = false;
    answer.message(asMessage(note(2)));
    vi.advanceTimersByTime(999);
    expect(reply.sink.state).toBe('open');
    vi.advanceTimersByTime(1);
    expect(reply.sink.state).toBe('cut');
    expect(gone).toEqual(['slow']);
  });

  it('[F20] [P8] cuts a client for which more than 4 MiB would wait', () => {
    const { reply, answer, gone } = answerTo();
    const large = { ...note(1), padding: 'x'.repeat(1024 * 1024) };
    answer.message(asMessage(note(1)));
    reply.sink.keepsUp = false;
    answer.message(asMessage(large));
    expect([1, 2, 3].map(() => answer.message(asMessage(large)))).toEqual([true, true, true]);
    expect(answer.message(asMessage(large))).toBe(false);
    expect(reply.sink.state).toBe('cut');
    expect(gone).toEqual(['slow']);
  });
});
