import { describe, expect, it } from 'vitest';
import { costOf, cpuMsOf } from '../../../test/support/cpu-time.ts';
import { keys } from '../../../test/support/json-texts.ts';
import { assertScan } from '../../../test/support/plain-json.ts';
import { type ScanOutcome, scanJson } from '../src/scan.ts';

const deep = 1_000;

const expectSame = (bytes: Buffer, maxDepth = deep): void => assertScan(bytes, maxDepth);
const scan = (text: string, maxDepth = deep): ScanOutcome => scanJson(Buffer.from(text), maxDepth);
const faultOf = (outcome: ScanOutcome): string | undefined => (outcome.ok ? undefined : outcome.fault);

describe('scanJson and depth', () => {
  const nested = (count: number, open: string, close: string, inner = ''): string =>
    open.repeat(count) + inner + close.repeat(count);

  it.each([
    ['lists', nested(99, '[', ']'), 100],
    ['objects', nested(99, '{"a":', '}', '1'), 100],
    ['both in turn', nested(49, '[{"a":', '}]', '1'), 99],
    ['through the routing levels', `{"params":{"_meta":{"a":${nested(97, '[', ']')}}}}`, 100],
    ['with white space', nested(99, ' [ ', ' ] '), 100],
  ])('[B04] takes %s to the limit and refuses one more', (_, inner, maxDepth) => {
    const text = inner.startsWith('{"params"') ? inner : `{"x":${inner}}`;
    expect(scan(text, maxDepth).ok).toBe(true);
    expect(faultOf(scan(text, maxDepth - 1))).toBe('too_deep');
  });

  it('counts depth, not brackets', () => {
    expect(scan(`{"x":[${'[],'.repeat(1_000)}{"a":[]}]}`, 4).ok).toBe(true);
  });

  it("[B03] does not count a batch's own brackets", () => {
    expect(scan('[{"a":[]}]', 2).ok).toBe(true);
    expect(faultOf(scan('[{"a":[]}]', 1))).toBe('too_deep');
    expect(faultOf(scan('[[[]]]', 1))).toBe('too_deep');
  });

  it.each([1, 2, 3])('refuses routing levels that lie below a limit of %i', (maxDepth) => {
    expectSame(Buffer.from('{"params":{"_meta":{"a":1}}}'), maxDepth);
    expectSame(Buffer.from('{"params":{"_meta":{"a":[]}}}'), maxDepth);
    expectSame(Buffer.from('{"a":[[]]}'), maxDepth);
  });

  it.each(['[', '{"a":', '{"params":', '[{"_meta":'])('[B04] survives a million times %s', (open) => {
    const text = Buffer.from(open.repeat(1_000_000));
    expect(faultOf(scanJson(text, 100))).toBe('too_deep');
    expect(['not_json', 'too_many_values']).toContain(faultOf(scanJson(text, Number.POSITIVE_INFINITY)));
  });

  it('reads a million levels without a limit', () => {
    const count = 1_000_000;
    expect(scan(nested(count, '[', ']'), Number.POSITIVE_INFINITY).ok).toBe(true);
    expect(scan(nested(count, '{"a":', '}', '0'), Number.POSITIVE_INFINITY).ok).toBe(true);
    expect(scan(`${nested(count, '[', ']')}]`, Number.POSITIVE_INFINITY).ok).toBe(false);
  });
});

describe('scanJson takes linear time', () => {
  const mebibytes = 2;
  const size = mebibytes * 1024 * 1024;
  const fill = (piece: string, before: string, after: string): Buffer => {
    const text = piece.repeat(Math.ceil((size - before.length - after.length) / Buffer.byteLength(piece)));
    return Buffer.from(before + text.slice(0, text.length - (piece.endsWith(',') ? 1 : 0)) + after);
  };

  // Far above what a loaded machine needs (some 10 to 500 ms), far below what anything quadratic takes (minutes).
  it.each([
    ['one long string', fill('x', '{"id":1,"params":{"a":"', '"}}')],
    ['one long string of other alphabets', fill('€', '{"id":1,"params":{"a":"', '"}}')],
    ['escapes', fill('\\n', '{"id":1,"params":{"a":"', '"}}')],
    ['unicode escapes', fill('\\u0041', '{"id":1,"params":{"a":"', '"}}')],
    ['strings just longer than a run read by bytes', fill(`"${'x'.repeat(25)}\\t",`, '{"id":1,"params":{"a":[', ']}}')],
    ['small tokens', fill('1,', '{"id":1,"params":{"a":[', ']}}')],
    ['empty lists', fill('[],', '{"id":1,"params":{"a":[', ']}}')],
    ['short strings', fill('"",', '{"id":1,"params":{"a":[', ']}}')],
    ['white space', fill(' \n', '{"id":1,"params":{"a":[', ']}}')],
    ['one long number', fill('1', '{"id":1,"params":{"a":', '}}')],
    ['a batch of scalars', fill('1,', '[', ']')],
    ['a batch of messages', fill('{"params":{"_meta":{}}},', '[', ']')],
    ['escaped keys deep down', fill('{"\\u0061":1},', '{"id":1,"params":{"a":[', ']}}')],
    ['a long key deep down', fill('k', '[{"id":1,"params":{"a":{"', '":1}}}]')],
    ['a long escaped key deep down', fill('\\u006b', '{"params":{"a":{"', '":1}}}')],
  ])('2 MiB of %s', (_, bytes) => {
    expect(costOf(() => expect(scanJson(bytes, 100, unlimited).ok).toBe(true), maxCost)).toBeLessThan(maxCost);
  });

  it.each([10_000, 100_000])('%i keys of a message, of its params and of its _meta', (count) => {
    const members = keys(count);
    const bytes = Buffer.from(`{${members},"params":{${members},"_meta":{${members}}}}`);
    let outcome: ScanOutcome | undefined;
    expect(
      costOf(() => {
        outcome = scanJson(bytes, 100, unlimited);
      }, maxCost),
    ).toBeLessThan(maxCost);
    expect(outcome?.ok && outcome.values[0]?.meta?.keys.length).toBe(count);
  });

  it('keys that look like numbers, whose hashes collide easily', () => {
    // V8 hashes a string that is an array index by its value: multiples of a power of two share the low bits.
    const members = Array.from({ length: 50_000 }, (_, index) => `"${index * 65_536}":0`).join();
    const text = Buffer.from(`{"params":{${members}}}`);
    expect(costOf(() => expect(scanJson(text, 100, unlimited).ok).toBe(true), maxCost)).toBeLessThan(maxCost);
  });
});

/** In units of `costOf`. Linear work costs at most 40 here. Quadratic work takes minutes. */
const maxCost = 200;

/** As no reader has it: for how the time grows. */
const unlimited = { maxBatch: Number.POSITIVE_INFINITY, maxMembers: Number.POSITIVE_INFINITY, foldsKeys: false };

describe('what is bounded in every text', () => {
  it.each([
    ['more members than 8,192', 'too_many_members', `{${keys(8_193)}}`],
    ['more members of params', 'too_many_members', `{"params":{${keys(8_193)}}}`],
    ['more members of all messages', 'too_many_members', `[${`{${keys(100)}},`.repeat(81)}{${keys(93)}}]`],
    [
      'more members of all levels',
      'too_many_members',
      `{${keys(4_000)},"params":{${keys(4_000)},"_meta":{${keys(193)}}}}`,
    ],
    ['a key of more than 4,096 bytes', 'key_too_long', `{"params":{"${'k'.repeat(4_097)}":1}}`],
    ['a batch of more than 1,000 values', 'batch_too_large', `[${'{},'.repeat(1_000)}{}]`],
    ['more than 2^22 values in 9 MiB', 'too_many_values', `{"params":{"a":[${'0,'.repeat(2 ** 22 + 2 ** 19)}0]}}`],
    ['more than 2^20 values in 40 MiB', 'too_many_values', `{"a":[${`0,${' '.repeat(38)}`.repeat(2 ** 20)}0]}`],
    ['twice as many escapes', 'too_many_values', `{"a":"${'\\nxxxxxxxxxxxxxxxxxx'.repeat(2 ** 21 + 1)}"}`],
    [
      'values and escapes together',
      'too_many_values',
      `{"a":[${`"\\n",${' '.repeat(40)}`.repeat(2 ** 20 - 2 ** 18)}0]}`,
    ],
  ])('[S-06] [C-05] %s: %s', (_, fault, text) => {
    expect(faultOf(scan(text))).toBe(fault);
  });

  it('[S-05] so many are read: any number in 8 MiB, two million in 16, a million values or two million escapes in more', () => {
    for (const part of ['0,', '[],', '"",', '{"":0},'])
      expect(scan(`{"a":[${part.repeat(Math.floor((2 ** 23 - 10) / part.length))}0]}`).ok).toBe(true);
    expect(scan(`{"a":"${'\\n'.repeat(2 ** 22 - 10)}"}`).ok).toBe(true);
    expect(scan(`{"a":[${'123456,'.repeat(2 ** 21 - 10)}0]}`).ok).toBe(true);
    expect(scan(`{"a":[${`0,${' '.repeat(38)}`.repeat(2 ** 20 - 10)}0]}`).ok).toBe(true);
    expect(scan(`{"a":"${'\\nxxxxxxxxxxxxxxxxxx'.repeat(2 ** 21 - 10)}"}`).ok).toBe(true);
  });

  it('a text that is cut in a string leaves the reading of strings as fast as it was', () => {
    const text = Buffer.from(`{"a":[${`"${'x'.repeat(30)}",`.repeat(200_000)}0]}`);
    const least = (): number =>
      Math.min(...Array.from({ length: 7 }, () => cpuMsOf(() => expect(scanJson(text, 100).ok).toBe(true))));
    const before = least();
    for (let cut = 20; cut < 60; cut += 1) scanJson(text.subarray(0, cut), 100);
    expect(least()).toBeLessThan(before * 2);
  });

  it('[S-06] so much is read: 8,192 members, a key of 4,096 bytes, 1,000 values', () => {
    for (const text of [
      `{${keys(8_192)}}`,
      `[${`{${keys(100)}},`.repeat(81)}{${keys(92)}}]`,
      `{"${'k'.repeat(4_096)}":1}`,
      `[${'{},'.repeat(999)}{}]`,
    ])
      expect(scan(text).ok).toBe(true);
  });
});
