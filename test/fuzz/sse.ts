import assert from 'node:assert/strict';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import fc from 'fast-check';
import { formatEventId } from '../../src/core/protocol/wire/event-id.ts';
import { flattenLineBreaks } from '../../src/core/protocol/wire/lines.ts';
import { decodeEvents, encodeLoggedEvents } from '../../src/core/protocol/wire/sse.ts';
import { EventReader } from '../../src/features/remote/http-client/event-reader.ts';
import { anyText } from '../support/json-texts.ts';
import { cut } from '../support/plain-lines.ts';
import { readByTheRules } from '../support/plain-sse.ts';
import { corpusOf, cuts, mutated, record } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';

const corpus = corpusOf('sse');

/** What tries to be more than data. */
const injections = fc
  .array(
    fc.constantFrom(
      ...[
        '\n',
        '\r',
        '\r\n',
        '\n\n',
        'id: 9',
        'event: x',
        'retry: 1',
        'data:',
        ':',
        ' ',
        '\0',
        '\u2028',
        '\u0085',
        '\ufeff',
      ],
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''));
/** Few streams and epochs among others, so that some events share the beginnings of their ids. */
const place = record({
  stream: fc.nat({ max: 99 }),
  epoch: fc.oneof(fc.constantFrom(1, 1_763_634_000_000), fc.maxSafeNat()),
  seq: fc.oneof(fc.nat(), fc.maxSafeNat()),
});
/** What a server may have written as a message, as it goes out; empty for a priming event. */
const data = fc
  .oneof(anyText, injections, fc.constant(''))
  .map((text) => Buffer.from(flattenLineBreaks(Buffer.from(text))));
const events = fc.array(fc.tuple(place, data), { maxLength: 5 });

const writer = createFuzzer({
  name: 'SSE writer: what eventsource-parser reads is what was written, and nothing more',
  share: 8,
  cases: fc.tuple(events, fc.nat(), cuts),
  check([placed, retryMs, places]) {
    const text = encodeLoggedEvents(
      placed.map(([at, data]) => ({ ...at, data })),
      retryMs,
    );
    const written = placed.map(([at, data]) => ({ id: formatEventId(at.stream, at), data }));
    const read: EventSourceMessage[] = [];
    const retries: number[] = [];
    const parser = createParser({
      onEvent: (event) => read.push(event),
      onRetry: (ms) => retries.push(ms),
      onError: (error) => assert.fail(error),
    });
    const decoder = new TextDecoder();
    for (const chunk of cut(text, places)) parser.feed(decoder.decode(chunk, { stream: true }));
    const isPriming = (bytes: Buffer): boolean => bytes.length === 0;
    assert.deepEqual(
      read.map((event) => ({ ...event })),
      written.map(({ id, data }) => ({ id, event: isPriming(data) ? undefined : 'message', data: data.toString() })),
    );
    assert.deepEqual(
      retries,
      written.filter(({ data }) => isPriming(data)).map(() => retryMs),
    );
    assert.deepEqual(
      decodeEvents(text),
      placed.map(([id, data]) => (isPriming(data) ? { kind: 'priming', id, retryMs } : { kind: 'message', id, data })),
    );
  },
});

const pieces = fc.constantFrom(
  ...['data', 'event', 'id', 'retry', 'Data', 'data ', 'x', ':', ': ', ':  ', '\n', '\n\n', '\r', '\r\n', '\r\n\r\n'],
  ...['1', '12', '-1', 'é', '🌍', '\0', '\ufeff', '\u2028', '{"a":1}', 'message', 'endpoint', '/m?s=1'],
);
const streams = fc.oneof(
  mutated(corpus),
  fc.array(pieces, { maxLength: 40 }).map((parts) => Buffer.from(parts.join(''))),
);

function read(chunks: readonly Buffer[], maxEventBytes: number) {
  const reader = new EventReader({ maxEventBytes });
  const found = chunks
    .flatMap((chunk) => reader.push(Buffer.from(chunk)))
    .map((event) => ({ ...event, data: event.data.toString() }));
  return { events: found, overflow: reader.overflow, retryMs: reader.retryMs };
}

const reader = createFuzzer({
  name: 'SSE reader: any chunking gives the same, which is what the rules of HTML give',
  share: 8,
  cases: fc.tuple(streams, cuts, fc.integer({ min: 1, max: 300 })),
  seeds: corpus.map((bytes) => [bytes, [...bytes.keys()], 100] as const),
  check([bytes, places, maxEventBytes]) {
    const whole = read([bytes], 1_000_000);
    const inChunks = read(cut(bytes, places), 1_000_000);
    assert.deepEqual(inChunks, whole);
    // Marks before further lines are dropped as well, which HTML does not ask for.
    const unmarked = Buffer.from(bytes.toString().replace(/(^|\n|\r)\ufeff+/g, '$1'));
    const { events, retryMs } = readByTheRules(unmarked, { withIds: true });
    assert.deepEqual(
      whole.events.map(({ type, data }) => ({ type, data })),
      events.map(({ type, data }) => ({ type, data })),
    );
    assert.equal(whole.retryMs, retryMs);
    // Within a limit nothing is told that would not be told without one.
    const limited = read(cut(bytes, places), maxEventBytes);
    assert.deepEqual(limited.events, whole.events.slice(0, limited.events.length));
    assert.ok(limited.events.every(({ data }) => Buffer.byteLength(data) <= maxEventBytes));
    assert.ok(limited.overflow !== undefined || limited.events.length === whole.events.length);
  },
});

export const fuzzers = [writer, reader];
