import { describe, expect, it, vi } from 'vitest';
import type { BackendEnd, BackendEvents } from '../../../../src/core/backend/backend.ts';
import { EarlyOutput } from '../../../../src/core/backend/starting/early-output.ts';
import { createMessage, type Message } from '../../../../src/core/protocol/message/message.ts';
import { asMessage } from '../../../support/as-message.ts';

const note = (n: number): Message => createMessage({ method: 'x', params: { n } });
const ended: BackendEnd = { reason: 'exited', detail: 'It exited.' };

/** A user of a backend that records the events. */
function createUser() {
  const got: unknown[] = [];
  const events: BackendEvents = {
    onMessages: (messages, ids) => void got.push([messages.map(({ text }) => JSON.parse(`${text}`).params.n), ids]),
    onNoise: (text) => void got.push(`${text}`),
    onUnanswered: (ids, reason) => void got.push({ ids, reason }),
    onState: (state) => void got.push({ state }),
    onEnd: ({ reason }) => void got.push(reason),
  };
  return { got, events };
}

describe('the early output of a backend', () => {
  it('is delivered once and in order, with the requests that its messages belong to', () => {
    const { got, events } = createUser();
    const early = new EarlyOutput(10_000, () => expect.fail('nothing is too much'));
    early.onMessages([note(1), note(2)], [7]);
    early.onNoise(Buffer.from('a'));
    early.onState('s');
    early.onUnanswered([8], 'internal');
    early.onMessages([note(3)]);
    early.onEnd(ended);
    early.deliver(events);
    early.deliver(events);
    expect(got).toEqual([
      [[1, 2], [7]],
      'a',
      { state: 's' },
      { ids: [8], reason: 'internal' },
      [[3], undefined],
      'exited',
    ]);
  });

  it('[P8] has one limit for all texts, and nothing is kept after the first text above it', () => {
    const { got, events } = createUser();
    const onExcess = vi.fn();
    const early = new EarlyOutput(2_000, onExcess);
    early.onState('a'.repeat(1_000));
    early.onMessages([note(1), asMessage({ method: 'x', params: { n: 2, fill: '.'.repeat(1_000) } }), note(3)]);
    early.onState('b');
    early.onState('s');
    early.deliver(events);
    expect(got).toEqual([{ state: 'a'.repeat(1_000) }, [[1], undefined]]);
    expect(onExcess).toHaveBeenCalledTimes(4);
  });

  it('[P8] keeps little text that is no message, and counts the rest, without a limit', () => {
    const kept: [number, number | undefined][] = [];
    const { events } = createUser();
    const early = new EarlyOutput(2_000, () => expect.fail('nothing is too much'));
    for (let n = 0; n < 10_000; n++) early.onNoise(Buffer.alloc(1_024, 'a'));
    early.onMessages([note(1)]);
    early.deliver({ ...events, onNoise: (text, more) => void kept.push([text.length, more]) });
    expect(kept).toHaveLength(16);
    expect(kept.at(-1)).toEqual([1_024, 10_000 - 16]);
  });

  it('[P8] counts an empty text as 256 bytes, because a million of them fill the memory too', () => {
    const { got, events } = createUser();
    const onExcess = vi.fn();
    const early = new EarlyOutput(1_024, onExcess);
    for (let n = 0; n < 10; n++) early.onState('');
    early.deliver(events);
    expect([got.length, onExcess.mock.calls.length]).toEqual([4, 6]);
  });

  it('[P8] keeps copies, not the chunks that the texts were read in', () => {
    const kept: Buffer[] = [];
    const early = new EarlyOutput(10_000, () => undefined);
    const chunk = Buffer.alloc(65_536, JSON.stringify({ jsonrpc: '2.0', method: 'x' }));
    early.onNoise(chunk.subarray(0, 10));
    early.onMessages([asMessage(chunk.subarray(0, 30))]);
    early.deliver({
      ...createUser().events,
      onNoise: (text) => kept.push(text),
      onMessages: ([some]) => kept.push((some as Message).text),
    });
    expect(kept.map(({ buffer }) => buffer.byteLength)).toEqual([10, 30]);
  });

  it('that comes during the delivery is delivered too', () => {
    const { got, events } = createUser();
    const early = new EarlyOutput(10_000, () => undefined);
    early.onNoise(Buffer.from('a'));
    early.onNoise(Buffer.from('b'));
    early.deliver({
      ...events,
      onNoise(text) {
        if (`${text}` === 'a') early.onEnd(ended);
        events.onNoise(text);
      },
    });
    expect(got).toEqual(['a', 'b', 'exited']);
  });

  it('that is cleared is never delivered, not even the rest of a delivery', () => {
    const { got, events } = createUser();
    const early = new EarlyOutput(10_000, () => undefined);
    for (const text of ['a', 'b']) early.onNoise(Buffer.from(text));
    early.deliver({
      ...events,
      onNoise(text) {
        events.onNoise(text);
        early.clear();
      },
    });
    early.deliver(events);
    expect(got).toEqual(['a']);
  });
});
