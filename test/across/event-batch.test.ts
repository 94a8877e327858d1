import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SseEvent } from '../../src/core/protocol/wire/sse.ts';
import {
  createBatch,
  createFinalBatch,
  createLoggedBatch,
  createMessageBatch,
  createPrimingBatch,
  createRetryBatch,
  type EventBatch,
  gapBatch,
} from '../../src/core/reply/event-batch.ts';
import { ReceivedBatch } from '../../src/features/cluster/forward/received-events.ts';

const at = (seq: number) => ({ stream: 3, epoch: 5, seq });
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

describe('the batch', () => {
  const a = json({ a: 1 });
  const b = json({ b: 2 });
  const priming = Buffer.alloc(0);

  it.each<[string, EventBatch, { text: string; at?: object; events: readonly SseEvent[] }]>([
    [
      'of logged events names the requests in all ids but the last',
      createLoggedBatch(
        [
          { ...at(1), data: priming },
          { ...at(2), data: a, last: false },
          { ...at(3), data: b, last: true },
        ],
        500,
        '~7',
      ),
      {
        text:
          'id: 3.5-1~7\nretry: 500\ndata: \n\nid: 3.5-2~7\nevent: message\ndata: {"a":1}\n\n' +
          'id: 3.5-3\nevent: message\ndata: {"b":2}\n\n',
        at: at(3),
        events: [
          { kind: 'priming', id: { ...at(1), requests: '~7' }, retryMs: 500 },
          { kind: 'message', id: { ...at(2), requests: '~7' }, data: a },
          { kind: 'message', id: at(3), data: b },
        ],
      },
    ],
    [
      'of logged events that name no requests',
      createLoggedBatch([{ ...at(2), data: a }], 500),
      {
        text: 'id: 3.5-2\nevent: message\ndata: {"a":1}\n\n',
        at: at(2),
        events: [{ kind: 'message', id: at(2), data: a }],
      },
    ],
    [
      'of messages without ids has no position',
      createMessageBatch(a, b),
      {
        text: 'event: message\ndata: {"a":1}\n\nevent: message\ndata: {"b":2}\n\n',
        events: [
          { kind: 'message', data: a },
          { kind: 'message', data: b },
        ],
      },
    ],
    [
      'of a priming event takes nothing but the id from its argument',
      createPrimingBatch({ ...at(1), requests: '~7', data: a } as Parameters<typeof createPrimingBatch>[0], 20),
      {
        text: 'id: 3.5-1~7\nretry: 20\ndata: \n\n',
        at: at(1),
        events: [{ kind: 'priming', id: { ...at(1), requests: '~7' }, retryMs: 20 }],
      },
    ],
    [
      'of final events has one id, at the end',
      createFinalBatch(['{"a":1}', '{"b":2}'], { stream: 3, epoch: 5 }),
      {
        text: `event: message\ndata: {"a":1}\n\nid: 3.5-${Number.MAX_SAFE_INTEGER}\nevent: message\ndata: {"b":2}\n\n`,
        at: at(Number.MAX_SAFE_INTEGER),
        events: [
          { kind: 'message', data: a },
          { kind: 'message', id: at(Number.MAX_SAFE_INTEGER), data: b },
        ],
      },
    ],
    [
      'of a reconnection time has whole milliseconds',
      createRetryBatch(7.2),
      { text: 'retry: 8\n\n', events: [{ kind: 'retry', retryMs: 8 }] },
    ],
    [
      'of a gap has no message',
      gapBatch,
      { text: 'event: gap\ndata: {"reason":"history_lost"}\n\n', events: [{ kind: 'gap' }] },
    ],
  ])('%s', (_, batch, expected) => {
    expect(batch.text.toString()).toBe(expected.text);
    expect([batch.at, batch.events]).toEqual([expected.at, expected.events]);
  });

  it('is encoded once', () => {
    for (const batch of [createLoggedBatch([{ ...at(1), data: a }], 1), createMessageBatch(a, b)])
      expect(batch.text).toBe(batch.text);
  });

  it('keeps the events of a log as they are', () => {
    let reads = 0;
    const event = {
      ...at(1),
      get data() {
        reads += 1;
        return a;
      },
    };
    const batch = createLoggedBatch([event], 1);
    expect(reads).toBe(0);
    expect(batch.messageTexts[0]).toBe(a);
  });
});

describe('a batch that was received from another instance', () => {
  const texts = fc.jsonValue().map(json);
  const logged = fc.array(
    fc.record({ seq: fc.nat(), data: fc.oneof(texts, fc.constant(Buffer.alloc(0))), last: fc.boolean() }),
    { minLength: 1 },
  );
  const batches: fc.Arbitrary<EventBatch> = fc.oneof(
    logged.map((events) =>
      createLoggedBatch(
        events.map(({ seq, ...event }) => ({ ...at(seq), ...event })),
        500,
        '~7,%22x%22',
      ),
    ),
    fc.array(texts).map((messages) => createMessageBatch(...messages)),
    fc.constantFrom(
      createFinalBatch(['{"a":1}', '{"b":2}'], at(1)),
      createRetryBatch(8),
      gapBatch,
      createBatch([...createMessageBatch(json(1)).events, ...gapBatch.events, ...createRetryBatch(8).events]),
    ),
  );

  it('has the text, the position, the events and the messages of the batch that was sent', () => {
    fc.assert(
      fc.property(batches, (sent) => {
        const received = new ReceivedBatch(sent.text);
        expect(received.text).toBe(sent.text);
        expect(received.at).toEqual(sent.at);
        expect(received.events).toEqual(sent.events);
        expect(received.messageTexts).toEqual(sent.messageTexts);
      }),
    );
  });

  it('is decoded only if its events are needed', () => {
    const foreign = new ReceivedBatch(Buffer.from('foreign'));
    expect([foreign.text.toString(), foreign.at]).toEqual(['foreign', undefined]);
    expect(() => foreign.events).toThrow('not a sequence of events');
  });
});
