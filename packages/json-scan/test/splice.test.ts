import { describe, expect, it } from 'vitest';
import { findRange, objectAt, scalarAt, spliceCancelledId, spliceId, stringAt, valueAt } from '../src/splice.ts';

const splicedId = (text: string, id = '"new"'): string => spliceId(Buffer.from(text), id).toString();
const splicedCancelledId = (text: string): string => spliceCancelledId(Buffer.from(text), '"new"').toString();

describe('the id of a message', () => {
  it.each([
    ['{"jsonrpc":"2.0","id":1,"method":"x"}', '{"jsonrpc":"2.0","id":"new","method":"x"}'],
    ['{"id":"a\\"b\\\\","x":1}', '{"id":"new","x":1}'],
    ['{ "id" :\t-12  , "x":1e400}', '{ "id" :\t"new"  , "x":1e400}'],
    ['{"\\u0069d":1}', '{"\\u0069d":"new"}'],
    ['{"params":{"id":5,"_meta":{"id":6}},"id":7}', '{"params":{"id":5,"_meta":{"id":6}},"id":"new"}'],
    ['{"id":null,"error":{"id":1}}', '{"id":"new","error":{"id":1}}'],
    ['{"x":"ünï\u2028😀","id":"ü"}', '{"x":"ünï\u2028😀","id":"new"}'],
    ['{"id":12345678901234567890,"n":12345678901234567890}', '{"id":"new","n":12345678901234567890}'],
    ['{"id":{"deep":[1,{}]},"x":[]}', '{"id":"new","x":[]}'],
  ])('[P1] is replaced in %s and nothing else', (text, expected) => {
    expect(splicedId(text)).toBe(expected);
  });

  it('can become longer, shorter or a number, and the given text is not changed', () => {
    const text = Buffer.from('{"id":12345,"x":1}');
    expect(spliceId(text, '1').toString()).toBe('{"id":1,"x":1}');
    expect(spliceId(text, JSON.stringify('x'.repeat(300)))).toHaveLength(text.length - 5 + 302);
    expect(text.toString()).toBe('{"id":12345,"x":1}');
  });

  it.each(['{"x":1}', '{"params":{"id":1}}', '42', '', '{"id":1', '[]', '{"id":1,"id":2}'])(
    'cannot be replaced in %j',
    (text) => {
      expect(() => splicedId(text)).toThrow();
    },
  );
});

describe('the id that a cancellation names', () => {
  it.each([
    ['{"id":9,"params":{"requestId":1,"reason":"x"}}', '{"id":9,"params":{"requestId":"new","reason":"x"}}'],
    [
      '{"params":{"_meta":{"requestId":2}, "requestId" : "a" }}',
      '{"params":{"_meta":{"requestId":2}, "requestId" : "new" }}',
    ],
  ])('[P1] is replaced in %s and nothing else', (text, expected) => {
    expect(splicedCancelledId(text)).toBe(expected);
  });

  it.each(['{"requestId":1}', '{"params":[1]}', '{"params":{"x":1}}'])('cannot be replaced in %j', (text) => {
    expect(() => splicedCancelledId(text)).toThrow();
  });
});

describe('a value in a text', () => {
  it.each([
    ['in what is not on the way', '{"a":{"x":1,"x":2},"b":{"c":7}}'],
    ['below params, which are no params here', '{"b":{"params":{"x":1,"x":2,"_meta":{"y":1,"y":2}},"c":7}}'],
    ['in the value', '{"b":{"c":{"d":1,"d":2}}}'],
  ])('[A08] is found although a key stands twice %s', (_, text) => {
    expect(valueAt(Buffer.from(text), ['b', 'c'])?.toString()).toBe(/"c":(7|\{.*?\})/.exec(text)?.[1]);
  });

  it.each(['{"b":{"c":1},"b":{"c":2}}', '{"b":{"c":1,"\\u0063":2}}'])(
    '[A08] is not taken from an object that has its key twice: %s',
    (text) => {
      expect(findRange(Buffer.from(text), ['b', 'c'])).toBe('duplicate_key');
    },
  );

  it('[A08] is found beside others whose key stands twice', () => {
    const text = '{"b":{"x":1,"c":7,"x":2}}';
    expect(valueAt(Buffer.from(text), ['b', 'c'])?.toString()).toBe('7');
  });

  it.each([
    ['{ "x" : 1 }', '{ "x" : 1 }', undefined],
    ['"\\u0061"', undefined, '"\\u0061"'],
    ['[{}]', undefined, undefined],
    ['null', undefined, undefined],
  ])('is taken as an object or a string only if it is one: %s', (value, object, text) => {
    const found = Buffer.from(`{"b":{"c": ${value} }}`);
    expect(objectAt(found, ['b', 'c'])?.toString()).toBe(object);
    expect(stringAt(found, ['b', 'c'])?.toString()).toBe(text);
    expect([objectAt(found, ['b', 'd']), stringAt(found, ['d'])]).toEqual([undefined, undefined]);
  });

  it.each(['{"b":{"c":1,"C":2}}', '{"B":1,"b":{"c":1}}', '{"b":{"C":1}}'])(
    '[S-03] counts a key in another case as the same where that is asked for: %s',
    (text) => {
      expect(findRange(Buffer.from(text), ['b', 'c'], true)).toBe('duplicate_key');
      expect(findRange(Buffer.from(text), ['b', 'c'])).not.toBe('duplicate_key');
    },
  );

  it('[S-11] is found beside 200,000 other members', () => {
    const others = Array.from({ length: 200_000 }, (_, index) => `"k${index}":0`).join();
    const text = Buffer.from(`{"b":{${others},"c":7}}`);
    expect(valueAt(text, ['b', 'c'])?.toString()).toBe('7');
    expect(findRange(Buffer.from(`{"b":{"c":1,${others},"c":7}}`), ['b', 'c'])).toBe('duplicate_key');
  });

  it('[S-05] is built if it is no list and no object, and has 64 KiB at most', () => {
    const built = (value: string) => scalarAt(Buffer.from(`{"b":{"c":${value}}}`), ['b', 'c']);
    expect(['"\\u0061"', '1e2', 'true', 'null'].map(built)).toEqual(['a', 100, true, null]);
    const long = `"${'x'.repeat(64 * 1024)}"`;
    expect(['{}', '[]', '['.repeat(100_000) + ']'.repeat(100_000), long].map(built)).toEqual(Array(4).fill(undefined));
  });
});
