import { afterEach, describe, expect, it } from 'vitest';
import { chooseKernel, setKernel } from '../../../../src/protocol/json/kernel/choose-kernel.ts';
import { ValueKernel } from '../../../../src/protocol/json/kernel/value-kernel.ts';
import { defaultLimits, scanObject, scanShortKeys } from '../../../../src/protocol/json/scan.ts';
import { maxServerDepth, memberRange, memberValue, readBody } from '../../../../src/protocol/message/message.ts';

const kernels = [16, 40, 64, 257, 65_536].map((windowBytes) => new ValueKernel({ minBytes: 1, windowBytes }));
const judged = { maxBatch: 100, maxMembers: 4_096, foldsKeys: true };

const others = Array.from({ length: 40 }, (_, index) => `"k${index}":{"a":["\\n",${index}]}`);

/** A request whose params have these members among many others. */
const requestWith = (...members: readonly string[]): Buffer => {
  const [first, ...rest] = members;
  const params = [...others.slice(0, 20), ...(first === undefined ? [] : [first]), ...others.slice(20), ...rest];
  return Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"m","params":{${params.join()}}}`);
};

/** The fault of a text with each kernel, and without one; `none` if there is none. */
function faultsOf(text: Buffer, limits = defaultLimits): string[] {
  const faults = [undefined, ...kernels].map((kernel) => {
    setKernel(kernel);
    const body = readBody(text, maxServerDepth, limits);
    return body.ok ? 'none' : body.reason;
  });
  return [...new Set(faults)];
}

afterEach(() => chooseKernel('auto'));

describe('an object with many members', () => {
  it.each([
    ['some of them long', [`"${'é'.repeat(300)}":{"a":[1, 2]}`, '"a" : 1 ', `"${'x'.repeat(900)}":0`]],
    ['a key twice', ['"a":1', '"\\u0061":2']],
    ['a long key twice', [`"${'é'.repeat(300)}":1`, `"\\u00e9${'é'.repeat(299)}":2`]],
    ['a key that is longer than any', [`"${'x'.repeat(5_000)}":1`]],
    ['a key that is looked at', ['"traceparent":1', '"trac\\u0065state":2']],
    ['no end', ['"a":1', '"b":[}']],
  ])('is read as without a kernel, but for its long keys: %s', (_, members) => {
    const text = Buffer.from(
      `{ ${[...others, ...members, ...others.map((member) => member.replace('k', 'l'))].join()} }`,
    );
    setKernel(undefined);
    const all = scanObject(text);
    for (const kernel of kernels) {
      setKernel(kernel);
      const found = scanShortKeys(text, 20);
      if (typeof all !== 'object') expect(found).toEqual(all);
      else expect(found).toEqual({ ...all, keys: all.keys.map((key) => (key.length > 20 ? undefined : key)) });
    }
  });

  it.each([
    ['the same text', 'key', 'key'],
    ['an escape', 'key', 'k\\u0065y'],
    ['escapes of every kind', '\\"\\\\\\/\\b\\f\\n\\r\\t', '\\u0022\\u005C\\u002f\\u0008\\u000c\\u000a\\u000d\\u0009'],
    ['two bytes', 'é', '\\u00e9'],
    ['three bytes', '日本', '\\u65e5\\u672C'],
    ['a pair of surrogates', '🌍', '\\ud83c\\udf0d'],
    ['one surrogate', 'a\\uD83C', '\\u0061\\ud83c'],
    ['sixteen bytes', '0123456789abcdef', '0123456789abcde\\u0066'],
    ['seventeen bytes', '0123456789abcdefg', '0123456789abcdef\\u0067'],
    ['a long key', 'x'.repeat(1_000), `${'x'.repeat(999)}\\u0078`],
    ['the empty key', '', ''],
    ['a key that is looked at', 'name', 'n\\u0061me'],
    ['a member that the kernel may not skip', '_meta', '\\u005fmeta'],
  ])('has no key twice: %s', (_, key, same) => {
    const text = requestWith(`"${key}":1`, `"${same}":2`);
    expect(faultsOf(text)).toEqual(['duplicate_key']);
    expect(faultsOf(text, judged)).toEqual(['duplicate_key']);
  });

  it.each([
    ['surrogates in another order', '\\ud83c\\udf0d', '\\udf0d\\ud83c'],
    ['one surrogate and the replacement character', '\\ud83c', '\\ufffd'],
    ['a zero behind the key', 'a', 'a\\u0000'],
    ['zeros only', '', '\\u0000'],
    ['a zero behind sixteen bytes', '0123456789abcdef', '0123456789abcdef\\u0000'],
    ['the last of many bytes', `${'x'.repeat(100)}1`, `${'x'.repeat(100)}2`],
  ])('may have keys that differ in little: %s', (_, key, other) => {
    const text = requestWith(`"${key}":1`, `"${other}":2`);
    expect(faultsOf(text)).toEqual(['none']);
    expect(faultsOf(text, judged)).toEqual(['none']);
  });

  it.each([
    ['ASCII', 'key', 'KEY'],
    ['ASCII in an escape', 'long key of more than sixteen', 'long \\u004bey of more than sixteen'],
    ['a letter that is no ASCII', 'É', 'é'],
    ['a letter that counts as ASCII', 'keys', 'keyſ'],
    ['a key that MCP defines', 'x', 'Name'],
  ])('of a client has no keys that differ only in case: %s', (_, key, other) => {
    for (const members of [
      [`"${key}":1`, `"${other}":2`],
      [`"${other}":1`, `"${key}":2`],
    ]) {
      expect(faultsOf(requestWith(...members))).toEqual(['none']);
      expect(faultsOf(requestWith(...members), judged)).toEqual(['duplicate_key']);
    }
  });

  it('has its routed members at once, and the others on request', () => {
    for (const kernel of kernels) {
      setKernel(kernel);
      const text = requestWith('"other":"o"', '"name":"n"', '"_meta":{"progressToken":"t"}');
      const body = readBody(text, maxServerDepth);
      const [read] = body.ok ? body.messages : [];
      if (read?.ok !== true) throw new Error('it was not read');
      const { message } = read;
      expect(message.routedRanges?.params?.keys).toEqual(['name', '_meta']);
      expect([memberValue(message, 'params', 'name'), memberValue(message, 'params', 'uri')]).toEqual(['n', undefined]);
      expect(message.progressToken).toBe('t');
      expect(memberValue(message, 'params', 'other')).toBe('o');
      expect(memberRange(message, 'params', 'k39')).toBeDefined();
      expect(message.memberRanges.params?.keys).toHaveLength(43);
    }
  });

  it('has at most as many members as its limit allows', () => {
    const limits = { ...judged, maxMembers: 40 };
    expect(faultsOf(requestWith(), limits)).toEqual(['none']);
    expect(faultsOf(requestWith('"one":0'), limits)).toEqual(['too_many_members']);
    expect(faultsOf(requestWith('"name":0'), limits)).toEqual(['too_many_members']);
  });

  it('ends where its text ends, or is invalid', () => {
    const text = requestWith('"one":"\\u0041"');
    for (let end = 60; end < text.length; end += 1)
      expect(faultsOf(Buffer.concat([text.subarray(0, end)])), `${end}`).toEqual(['not_json']);
  });
});
