import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EventId, formatEventId, formatRequests } from '../../../../src/core/protocol/wire/event-id.ts';
import {
  decodeEvents,
  encodeEndpointEvent,
  encodeEvent,
  encodeLoggedEvents,
  keepAliveComment,
  type SseEvent,
} from '../../../../src/core/protocol/wire/sse.ts';
import { readByTheRules } from '../../../support/plain-sse.ts';

const place = (seq: number) => ({ stream: 3, epoch: 1_763_634_000_000, seq });
const id = (seq: number) => formatEventId(3, place(seq));
const event = (seq: number, data: string) => ({ ...place(seq), data: Buffer.from(data) });

describe('encodeLoggedEvents', () => {
  it('[U-05] names the requests in all ids of a stream but the last', () => {
    const last = { ...event(3, '{"b":2}'), last: true };
    const { ids } = readByTheRules(encodeLoggedEvents([event(1, ''), event(2, '{"a":1}'), last], 500, '~7,8'));
    expect(ids).toEqual([`${id(1)}~7,8`, `${id(2)}~7,8`, id(3)]);
  });

  it('writes a message as one event with its id and type', () => {
    const text = encodeLoggedEvents([event(1, '{"jsonrpc":"2.0"}')], 2_000);
    expect(text.toString()).toBe('id: 3.1763634000000-1\nevent: message\ndata: {"jsonrpc":"2.0"}\n\n');
  });

  it('[R7.14] [R9.18] writes a priming event: an id, the normal retry, empty data, and nothing that is dispatched', () => {
    const text = encodeLoggedEvents([event(1, '')], 1_234);
    expect(text.toString()).toBe('id: 3.1763634000000-1\nretry: 1234\ndata: \n\n');
    // Empty data dispatches an event with empty data by the letter of the rules: its buffer is one line feed, not empty.
    expect(readByTheRules(text)).toEqual({
      events: [{ type: 'message', data: '', lastEventId: id(1) }],
      retryMs: 1_234,
      ids: [id(1)],
    });
  });

  it('writes a burst as one buffer, in order', () => {
    const text = encodeLoggedEvents([event(1, ''), event(2, '{"a":1}'), event(3, '{"b":2}')], 500);
    expect(readByTheRules(text).events.slice(1)).toEqual([
      { type: 'message', data: '{"a":1}', lastEventId: id(2) },
      { type: 'message', data: '{"b":2}', lastEventId: id(3) },
    ]);
    expect(encodeLoggedEvents([], 500).length).toBe(0);
  });

  it.each([
    ['what looks like fields', '{"a":"data: x","b":"\\nid: 9.9-9\\n\\nevent: evil","c":"retry: 1"}'],
    ['escaped line breaks', '{"a":"\\r\\n\\n\\u000a\\u000d"}'],
    ['U+2028, U+2029, U+0085, VT and FF', '{"a":"\u2028\u2029\u0085","b":"\\u000b\\f"}'],
    ['a byte order mark', '{"a":"\ufeff","\ufeff":1}'],
    ['an escaped NUL', '{"a":"\\u0000"}'],
    ['blanks at its start and end', '  {"a":1}  '],
    ['tabs', '\t{"a":1}\t'],
    ['a colon at its start', '":"'],
    ['a string of blanks', '" "'],
    ['characters of four bytes', '{"🌍":"🌍🌍"}'],
  ])('[S06] keeps %s, byte for byte, in one event', (_, json) => {
    const { events, ids } = readByTheRules(encodeLoggedEvents([event(1, json), event(2, '{"next":1}')], 500));
    expect(events.map(({ data }) => data)).toEqual([json, '{"next":1}']);
    expect(ids).toEqual([id(1), id(2)]);
  });

  it('[S06] any JSON text without CR and LF survives, and nothing in it makes another event, id or retry', () => {
    const pieces = fc.constantFrom(
      'data:',
      'id:',
      'retry: 1',
      'event: x',
      ':',
      ' ',
      '\u2028',
      '\u0085',
      '\ufeff',
      '\0',
      '\u000b',
    );
    const strings = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(pieces).map((parts) => parts.join('')),
    );
    const values = fc.jsonValue({ noUnicodeString: false });
    const jsonTexts = fc
      .tuple(
        fc.constantFrom('', ' ', '\t', '  '),
        fc.oneof(values, fc.record({ a: strings }), fc.dictionary(strings, strings)),
      )
      .map(([blank, value]) => blank + JSON.stringify(value) + blank);
    const bursts = fc.array(jsonTexts, { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(bursts, fc.nat(), (texts, retryMs) => {
        const events = texts.map((text, index) => event(index + 1, text));
        const seen = readByTheRules(encodeLoggedEvents(events, retryMs));
        const wellFormed = (text: string) => Buffer.from(text).toString();
        expect(seen).toEqual({
          events: texts.map((text, index) => ({ type: 'message', data: wellFormed(text), lastEventId: id(index + 1) })),
          retryMs: undefined,
          ids: texts.map((_, index) => id(index + 1)),
        });
      }),
      { numRuns: 300 },
    );
  });

  it('does not change what it is given, and may be called with parts of a larger buffer', () => {
    const memory = Buffer.from('xx{"a":1}yy');
    const data = memory.subarray(2, 9);
    expect(encodeLoggedEvents([{ ...place(1), data }], 1).toString()).toContain('data: {"a":1}\n\n');
    expect(memory.toString()).toBe('xx{"a":1}yy');
  });
});

describe('encodeEvent', () => {
  const encode = (event: SseEvent): string => encodeEvent(event).toString();

  it('writes a message without an id, which leaves the last event id as it was', () => {
    const message = encodeEvent({ kind: 'message', data: Buffer.from('{"b":2}') });
    expect(message.toString()).toBe('event: message\ndata: {"b":2}\n\n');
    const stream = Buffer.concat([encodeLoggedEvents([event(1, '{"a":1}')], 1), message]);
    expect(readByTheRules(stream).events).toEqual([
      { type: 'message', data: '{"a":1}', lastEventId: id(1) },
      { type: 'message', data: '{"b":2}', lastEventId: id(1) },
    ]);
  });

  it('[B17] writes a gap as an event of a type that clients skip, with its reason and without an id', () => {
    expect(encode({ kind: 'gap' })).toBe('event: gap\ndata: {"reason":"history_lost"}\n\n');
  });

  it('[R9.18] writes a reconnection time that dispatches no event', () => {
    expect(encode({ kind: 'retry', retryMs: 8 })).toBe('retry: 8\n\n');
    expect(readByTheRules(encodeEvent({ kind: 'retry', retryMs: 8 }))).toEqual({ events: [], retryMs: 8, ids: [''] });
  });

  it('writes ids in another form', () => {
    const formatId = ({ seq }: EventId): string => `token.${seq}`;
    const message: SseEvent = { kind: 'message', id: place(1), data: Buffer.from('{}') };
    expect(encodeEvent(message, formatId).toString()).toBe('id: token.1\nevent: message\ndata: {}\n\n');
    const priming: SseEvent = { kind: 'priming', id: place(2), retryMs: 5 };
    expect(encodeEvent(priming, formatId).toString()).toBe('id: token.2\nretry: 5\ndata: \n\n');
  });
});

describe('what else is written into a stream', () => {
  it('a keep-alive comment is no event and changes nothing', () => {
    const stream = Buffer.concat([
      encodeLoggedEvents([event(1, '{"a":1}')], 1),
      keepAliveComment,
      encodeLoggedEvents([event(2, '{"b":2}')], 1),
    ]);
    expect(readByTheRules(stream).events.map(({ data }) => data)).toEqual(['{"a":1}', '{"b":2}']);
  });

  it('the endpoint event of HTTP+SSE has the reconnection time', () => {
    expect(encodeEndpointEvent(5, '/m?token=t').toString()).toBe('retry: 5\nevent: endpoint\ndata: /m?token=t\n\n');
  });
});

describe('decodeEvents', () => {
  const jsonTexts = fc.jsonValue({ noUnicodeString: false }).map((value) => Buffer.from(JSON.stringify(value)));
  // Few streams and epochs, so that some events share the beginnings of their ids; numbers of any length.
  const places = fc.record({
    stream: fc.oneof(fc.nat(2), fc.maxSafeNat()),
    epoch: fc.constantFrom(1, 1_763_634_000_000, Number.MAX_SAFE_INTEGER),
    seq: fc.oneof(fc.nat(20), fc.maxSafeNat()),
  });
  const requestNames = fc.array(fc.oneof(fc.nat(), fc.string()), { maxLength: 3 }).map(formatRequests);
  const ids = fc
    .tuple(places, requestNames)
    .map(([at, requests]): EventId => (requests === undefined ? at : { ...at, requests }));
  const anEvent: fc.Arbitrary<SseEvent> = fc.oneof(
    fc.record({ kind: fc.constant('message' as const), data: jsonTexts }),
    fc.record({ kind: fc.constant('message' as const), id: ids, data: jsonTexts }),
    fc.record({ kind: fc.constant('priming' as const), id: ids, retryMs: fc.nat() }),
    fc.record({ kind: fc.constant('retry' as const), retryMs: fc.nat() }),
    fc.constant({ kind: 'gap' as const }),
  );

  it('is the inverse of encodeEvent, for any sequence of events', () => {
    fc.assert(
      fc.property(fc.array(anEvent), (events) => {
        const text = Buffer.concat(events.map((event) => encodeEvent(event)));
        expect(decodeEvents(text)).toEqual(events);
      }),
    );
  });

  it('is the inverse of encodeLoggedEvents, with priming events among others', () => {
    const logged = fc.tuple(places, fc.oneof(jsonTexts, fc.constant(Buffer.alloc(0))));
    fc.assert(
      fc.property(fc.array(logged), fc.nat(), (events, retryMs) => {
        const text = encodeLoggedEvents(
          events.map(([at, data]) => ({ ...at, data })),
          retryMs,
        );
        const decoded = decodeEvents(text);
        expect(decoded).toEqual(
          events.map(([at, data]) =>
            data.length > 0 ? { kind: 'message', id: at, data } : { kind: 'priming', id: at, retryMs },
          ),
        );
        expect(Buffer.concat(decoded.map((event) => encodeEvent(event)))).toEqual(text);
      }),
    );
  });

  it.each([
    ...[': comment\n', 'data: {"a":1}\n', 'id: 1', 'what: x\n\n', 'data\n\n', 'data: {}\n\n', 'event: message\n\n'],
    ...['event: endpoint\ndata: /\n\n', 'id: foreign\nevent: message\ndata: {}\n\n', 'id: 1.1-1\ndata: \n\n'],
  ])('throws for %j', (text) => {
    expect(() => decodeEvents(Buffer.from(text))).toThrow('not a sequence of events');
  });
});
