import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatEventId } from '../../../src/protocol/wire/event-id.ts';
import {
  decodeEvents,
  encodeEvent,
  encodeEvents,
  encodeMessage,
  encodeRetry,
  gapEvent,
  keepAliveComment,
} from '../../../src/protocol/wire/sse.ts';
import { readByTheRules } from '../../support/plain-sse.ts';

const place = (seq: number) => ({ stream: 3, epoch: 1_763_634_000_000, seq });
const id = (seq: number) => formatEventId(3, place(seq));
const event = (seq: number, data: string) => ({ ...place(seq), data: Buffer.from(data) });

describe('encodeEvents', () => {
  it('[U-05] names the requests in all ids of a stream but the last', () => {
    const last = { ...event(3, '{"b":2}'), last: true };
    const { ids } = readByTheRules(encodeEvents([event(1, ''), event(2, '{"a":1}'), last], 500, '~7,8'));
    expect(ids).toEqual([`${id(1)}~7,8`, `${id(2)}~7,8`, id(3)]);
  });

  it('writes a message as one event with its id and type', () => {
    const text = encodeEvents([event(1, '{"jsonrpc":"2.0"}')], 2_000);
    expect(text.toString()).toBe('id: 3.1763634000000-1\nevent: message\ndata: {"jsonrpc":"2.0"}\n\n');
  });

  it('[R7.14] [R9.18] writes a priming event: an id, the normal retry, empty data, and nothing that is dispatched', () => {
    const text = encodeEvents([event(1, '')], 1_234);
    expect(text.toString()).toBe('id: 3.1763634000000-1\nretry: 1234\ndata: \n\n');
    // Empty data dispatches an event with empty data by the letter of the rules: its buffer is one line feed, not empty.
    expect(readByTheRules(text)).toEqual({
      events: [{ type: 'message', data: '', lastEventId: id(1) }],
      retryMs: 1_234,
      ids: [id(1)],
    });
  });

  it('writes a burst as one buffer, in order', () => {
    const text = encodeEvents([event(1, ''), event(2, '{"a":1}'), event(3, '{"b":2}')], 500);
    expect(readByTheRules(text).events.slice(1)).toEqual([
      { type: 'message', data: '{"a":1}', lastEventId: id(2) },
      { type: 'message', data: '{"b":2}', lastEventId: id(3) },
    ]);
    expect(encodeEvents([], 500).length).toBe(0);
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
    const { events, ids } = readByTheRules(encodeEvents([event(1, json), event(2, '{"next":1}')], 500));
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
        const seen = readByTheRules(encodeEvents(events, retryMs));
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
    expect(encodeEvents([{ ...place(1), data }], 1).toString()).toContain('data: {"a":1}\n\n');
    expect(memory.toString()).toBe('xx{"a":1}yy');
  });
});

describe('what else is written into a stream', () => {
  it('a message without an id leaves the last event id as it was', () => {
    const stream = Buffer.concat([encodeEvents([event(1, '{"a":1}')], 1), encodeMessage(Buffer.from('{"b":2}'))]);
    expect(readByTheRules(stream).events).toEqual([
      { type: 'message', data: '{"a":1}', lastEventId: id(1) },
      { type: 'message', data: '{"b":2}', lastEventId: id(1) },
    ]);
  });

  it('a keep-alive comment is no event and changes nothing', () => {
    const stream = Buffer.concat([
      encodeEvents([event(1, '{"a":1}')], 1),
      keepAliveComment,
      encodeEvents([event(2, '{"b":2}')], 1),
    ]);
    expect(readByTheRules(stream).events.map(({ data }) => data)).toEqual(['{"a":1}', '{"b":2}']);
  });

  it('[B17] a gap is an event of a type that clients skip, with its reason and without an id', () => {
    const stream = Buffer.concat([encodeEvents([event(1, '{"a":1}')], 1), gapEvent]);
    expect(readByTheRules(stream).events[1]).toEqual({
      type: 'gap',
      data: '{"reason":"history_lost"}',
      lastEventId: id(1),
    });
  });
});

describe('decodeEvents', () => {
  const jsonTexts = fc.jsonValue({ noUnicodeString: false }).map((value) => Buffer.from(JSON.stringify(value)));
  const ids = fc.nat().map(id);
  const anEvent = fc.record(
    { id: ids, retryMs: fc.nat(), type: fc.constantFrom('message', 'gap', 'endpoint'), data: jsonTexts },
    { requiredKeys: [] },
  );

  it('is the inverse of encodeEvent, for any sequence of events', () => {
    fc.assert(
      fc.property(fc.array(anEvent), (events) => {
        const text = Buffer.concat(events.map(encodeEvent));
        expect(decodeEvents(text)).toEqual(events);
      }),
    );
  });

  it('is the inverse of encodeEvents, with priming events among others', () => {
    // Few streams and epochs, so that some events share the beginnings of their ids; numbers of any length.
    const number = fc.oneof(fc.nat(20), fc.maxSafeNat());
    const written = fc.record({
      stream: fc.oneof(fc.nat(2), fc.maxSafeNat()),
      epoch: fc.constantFrom(1, 1_763_634_000_000, Number.MAX_SAFE_INTEGER),
      seq: number,
      data: fc.oneof(jsonTexts, fc.constant(Buffer.alloc(0))),
    });
    fc.assert(
      fc.property(fc.array(written), fc.nat(), (events, retryMs) => {
        const text = encodeEvents(events, retryMs);
        const decoded = decodeEvents(text);
        expect(decoded).toEqual(
          events.map(({ stream, data, ...place }) => ({
            ...{ id: formatEventId(stream, place), data },
            ...(data.length > 0 ? { type: 'message' } : { retryMs }),
          })),
        );
        expect(Buffer.concat(decoded.map(encodeEvent))).toEqual(text);
      }),
    );
  });

  it('takes all else that is written into a stream', () => {
    const text = Buffer.concat([encodeMessage(Buffer.from('{"a":1}')), gapEvent, encodeRetry(7.2)]);
    expect(decodeEvents(text)).toEqual([
      { type: 'message', data: Buffer.from('{"a":1}') },
      { type: 'gap', data: Buffer.from('{"reason":"history_lost"}') },
      { retryMs: 8 },
    ]);
  });

  it.each([': comment\n', 'data: {"a":1}\n', 'id: 1', 'what: x\n\n', 'data\n\n'])('throws for %j', (text) => {
    expect(() => decodeEvents(Buffer.from(text))).toThrow('not a sequence of events');
  });
});
