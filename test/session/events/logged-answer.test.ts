import { describe, expect, it } from 'vitest';
import type { RequestId } from '../../../src/protocol/faults.ts';
import { LoggedAnswer } from '../../../src/session/events/logged-answer.ts';
import { asMessage } from '../../support/as-message.ts';

function createFixture({ missing = 1 } = {}) {
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
  const emitted: { stream: number; message: any; last: boolean; settles: RequestId | undefined }[] = [];
  const emit = (stream: number, text: Buffer, last: boolean, settles?: RequestId): void =>
    void emitted.push({ stream, message: JSON.parse(text.toString()), last, settles });
  return { answer: new LoggedAnswer({ emit }, 5, missing, 300), emitted };
}

const response = (id: RequestId, result: unknown = {}) => ({ jsonrpc: '2.0', id, result });
const note = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } };

describe('the answer of a call that an earlier owner left', () => {
  it('goes to the stream that it had, message by message, and ends it with the response', () => {
    const { answer, emitted } = createFixture();
    expect([answer.hasStream, answer.stream]).toEqual([true, 5]);
    answer.message(asMessage(note));
    answer.response(asMessage(response('a')));
    expect(emitted).toEqual([
      { stream: 5, message: note, last: false, settles: undefined },
      { stream: 5, message: response('a'), last: true, settles: 'a' },
    ]);
  });

  it('[P3] of a batch ends with the last missing response, however that comes', () => {
    const { answer, emitted } = createFixture({ missing: 3 });
    answer.response(asMessage(response(1)));
    answer.fail('two', 'outcome_unknown');
    answer.response(asMessage(response(3)));
    expect(emitted.map(({ settles, last }) => [settles, last])).toEqual([
      [1, false],
      ['two', false],
      [3, true],
    ]);
    expect(emitted[1]?.message).toMatchObject({ id: 'two', error: { data: { reason: 'outcome_unknown' } } });
  });

  it('[P8] is an error where the response is larger than an event may be', () => {
    const { answer, emitted } = createFixture();
    answer.response(asMessage(response(1, 'x'.repeat(300))));
    expect(emitted).toMatchObject([
      { message: { id: 1, error: { data: { reason: 'event_too_large' } } }, last: true, settles: 1 },
    ]);
  });

  it('is not ended when its session moves again, so that the next owner finds the call pending', () => {
    const { answer, emitted } = createFixture();
    answer.abandon();
    expect(emitted).toEqual([]);
  });
});
