import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compareLogPositions,
  formatEventId,
  formatRequests,
  parseEventId,
  readRequestIds,
} from '../../../../src/core/protocol/wire/event-id.ts';

const part = fc.oneof(fc.maxSafeNat(), fc.nat({ max: 100 }), fc.constantFrom(0, 1, 2 ** 53 - 1));

describe('event ids', () => {
  it('[R7.13] are read as what they were written from', () => {
    fc.assert(
      fc.property(part, part, part, (stream, epoch, seq) => {
        const text = formatEventId(stream, { epoch, seq });
        expect(parseEventId(text)).toEqual({ stream, epoch, seq });
        expect(text.length).toBeLessThanOrEqual(128);
        expect(text).toMatch(/^[\x21-\x7e]+$/);
      }),
    );
  });

  it('[U-05] name the requests that their stream answers, in characters that a header may have', () => {
    // `encodeURIComponent` leaves these characters as they are.
    const unescaped = fc.string({ unit: fc.constantFrom(..."-_.!~*'()aZ9") });
    const requestIds = fc.oneof(fc.string({ unit: 'binary' }), unescaped, fc.maxSafeInteger());
    const requests = fc.array(requestIds, { maxLength: 4 });
    fc.assert(
      fc.property(requests, part, (ids, seq) => {
        const named = formatRequests(ids);
        const at = { stream: 1, epoch: 2, seq, ...(named !== undefined && { requests: named }) };
        const text = formatEventId(1, at);
        expect(text).toMatch(/^[\x21-\x7e]{1,192}$/);
        const read = parseEventId(text);
        expect(read).toEqual(at);
        expect(read && readRequestIds(read)).toEqual(named === undefined ? [] : ids);
      }),
    );
    expect(formatRequests([7])).toBe('~7');
    expect(formatRequests(['x'.repeat(200)])).toBeUndefined();
    const longest = 'x'.repeat(128 - '~%22%22'.length);
    expect(formatRequests([longest])).toHaveLength(128);
    expect(formatRequests([`${longest}x`])).toBeUndefined();
    expect(readRequestIds({ stream: 1, epoch: 2, seq: 3 })).toEqual([]);
  });

  it('[S08] what is read is written the same: there is one text for each id', () => {
    const digits = fc.constantFrom(
      '0',
      '1',
      '9',
      '00',
      '01',
      '10',
      '9007199254740991',
      '9007199254740992',
      '',
      '-1',
      '+1',
      '1e3',
      ' 1',
      '٣',
    );
    const separators = fc.constantFrom('.', '-', '..', '--', ' ', ',', '');
    fc.assert(
      fc.property(digits, separators, digits, separators, digits, (a, one, b, two, c) => {
        const text = a + one + b + two + c;
        const id = parseEventId(text);
        if (id !== undefined) expect(formatEventId(id.stream, id)).toBe(text);
      }),
      { numRuns: 5_000 },
    );
  });

  it('[S08] only three decimal numbers are one', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'019.-+e \n٣²x'), maxLength: 12 }), (text) => {
        if (parseEventId(text) !== undefined) expect(text).toMatch(/^[0-9]+\.[0-9]+-[0-9]+$/);
      }),
    );
  });

  it.each([
    ['nothing', ''],
    ['a Redis id: the beginning', '0'],
    ['a Redis id: the smallest', '-'],
    ['a Redis id: the largest', '+'],
    ['a Redis id: only new ones', '$'],
    ['a Redis id: the last one', '>'],
    ['a Redis id', '1763634000000-1'],
    ['an exclusive Redis id', '(1-0'],
    ['an exclusive place', '0.(1-0'],
    ['a stream name', '_GET_stream:1'],
    ['an incomplete id', '0.1'],
    ['an incomplete id', '0.1-'],
    ['an incomplete id', '.1-1'],
    ['an incomplete id', '0.-1'],
    ['four parts', '0.1-1-1'],
    ['four parts', '0.0.1-1'],
    ['2^64', '0.1-18446744073709551616'],
    ['2^64 as epoch', '0.18446744073709551616-1'],
    ['2^64 as stream', '18446744073709551616.1-1'],
    ['2^53', '0.1-9007199254740992'],
    ['17 digits', '0.1-10000000000000000'],
    ['a negative number', '0.1--1'],
    ['a negative stream', '-1.1-1'],
    ['a plus sign', '0.1-+1'],
    ['an exponent', '0.1-1e3'],
    ['a hexadecimal number', '0.1-0x1'],
    ['an underscore', '0.1-1_0'],
    ['a leading zero', '0.1-01'],
    ['a leading zero in the epoch', '0.01-1'],
    ['a leading zero in the stream', '00.1-1'],
    ['Arabic digits', '\u0660.\u0661-\u0661'],
    ['fullwidth digits', '\uff10.\uff11-\uff11'],
    ['a superscript', '0.1-\u00b9'],
    ['a blank before', ' 0.1-1'],
    ['a blank after', '0.1-1 '],
    ['a blank inside', '0.1 -1'],
    ['a line feed after', '0.1-1\n'],
    ['a carriage return after', '0.1-1\r'],
    ['a NUL', '0.1-1\0'],
    ['a byte order mark', '\ufeff0.1-1'],
    ['two ids', '0.1-1, 0.1-2'],
    ['no request', '0.1-1~'],
    ['an empty request', '0.1-1~,7'],
    ['a request that is an object', '0.1-1~%7B%7D'],
    ['a request that is null', '0.1-1~null'],
    ['a request that is null beside another one', '0.1-1~1,null'],
    ['a request in another text', '0.1-1~7.0'],
    ['a request with a blank', '0.1-1~%207'],
    ['a broken escape', '0.1-1~%2'],
    ['a string without its end', '0.1-1~%22a'],
    ['8 KiB of a request', `0.1-1~${'1'.repeat(8_192)}`],
    ['a glob', '0.1-*'],
    ['a Unicode hyphen', '0.1\u20101'],
    ['a prototype', '__proto__'],
    ['8 KiB of digits', `0.1-${'1'.repeat(8_192)}`],
    ['8 KiB of zeros', `0.1-${'0'.repeat(8_192)}`],
    ['8 KiB of anything', 'x'.repeat(8_192)],
  ])('[S08] [B16] refuses a forged one: %s', (_, text) => {
    expect(parseEventId(text)).toBeUndefined();
  });

  it('order places by epoch, then by number', () => {
    const places = [
      { epoch: 0, seq: 0 },
      { epoch: 0, seq: 9 },
      { epoch: 0, seq: 10 },
      { epoch: 1, seq: 0 },
      { epoch: 10, seq: 0 },
      { epoch: 2 ** 53 - 1, seq: 2 ** 53 - 1 },
    ];
    const shuffled = [3, 5, 0, 4, 2, 1].map((index) => places[index] as (typeof places)[0]);
    expect(shuffled.sort(compareLogPositions)).toEqual(places);
    for (const place of places) expect(compareLogPositions(place, { ...place })).toBe(0);
  });
});
