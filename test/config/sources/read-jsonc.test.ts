import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readJsonc } from '../../../src/config/sources/read-jsonc.ts';

describe('readJsonc', () => {
  it.each([
    ['', 1, 1, 'a value is expected here'],
    ['// nothing', 1, 11, 'a value is expected here'],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3, 'a comma is expected here'],
    ['{"a": 1,,}', 1, 9, 'a key in double quotes is expected here'],
    ['[,]', 1, 2, 'a value is missing before this comma; add it, or remove the comma'],
    ['{"a" 1}', 1, 6, 'a colon is expected here'],
    ['{"a":}', 1, 6, 'a value is expected here'],
    [
      '{a: 1}',
      1,
      2,
      'nothing in JSON begins like this; strings and keys need double quotes, and comments begin with //',
    ],
    [
      '{"a": tru}',
      1,
      7,
      'nothing in JSON begins like this; strings and keys need double quotes, and comments begin with //',
    ],
    ['{1: 1}', 1, 2, 'a key in double quotes is expected here'],
    ['{"a": 1', 1, 8, 'the text ends, but a closing brace is missing'],
    ['[1', 1, 3, 'the text ends, but a closing bracket is missing'],
    ['[1.]', 1, 2, 'digits are missing at the end of this number'],
    ['[\n/* why', 2, 1, 'this comment has no end'],
    ['["a\nb"]', 1, 2, 'this string has no closing quote on its line'],
    ['["a', 1, 2, 'this string has no closing quote on its line'],
    ['["a\u0001"]', 1, 2, 'this string has a raw control character; write \\n or another escape'],
    ['["a\\x"]', 1, 2, 'this string has an unknown escape; known escapes are \\n, \\", \\\\ and \\u0041 for example'],
    ['["a\\u00"]', 1, 2, 'this string has a \\u without four hexadecimal digits'],
    ['{} x', 1, 4, 'nothing in JSON begins like this; strings and keys need double quotes, and comments begin with //'],
    ['{} 1', 1, 4, 'the end of the text is expected here'],
    [
      '{"a": 1,\n "\\u0061": 2}',
      2,
      2,
      'the key a appears twice in its object, first in line 1; merge the two, or remove one',
    ],
    [
      '{"a": 1, // first\r\n/* and\n */ "a": 2}',
      3,
      5,
      'the key a appears twice in its object, first in line 1; merge the two, or remove one',
    ],
    [
      '{"__proto__": 1, "__proto__": 2}',
      1,
      18,
      'the key __proto__ appears twice in its object, first in line 1; merge the two, or remove one',
    ],
  ])('%j: %i:%i %s', (text, line, column, message) => {
    expect(readJsonc(text)).toEqual({ ok: false, error: { line, column, message } });
  });

  it.each([
    ['a comment to the end of a line', '{ // one\n"a": 1}', { a: 1 }],
    ['a comment that has an end', '/* one\n two */ {"a": /* three */ 1}', { a: 1 }],
    ['trailing commas', '{"a": [1, 2,], "b": {"c": 3,},}', { a: [1, 2], b: { c: 3 } }],
    ['a comment behind a trailing comma', '[1, /* last */\n]', [1]],
    ['what only looks like a comment or a comma', '["// a", "/* b */", ",]"]', ['// a', '/* b */', ',]']],
    ['the same key in two objects', '[{"a": 1}, {"a": {"a": 2}}]', [{ a: 1 }, { a: { a: 2 } }]],
  ])('reads %s', (_, text, value) => {
    expect(readJsonc(text)).toMatchObject({ ok: true, value });
  });

  it('notes the position of each member and item', () => {
    const read = readJsonc('{\n  "a b": [1,\n    {"c": 2}],\n  "d": {"e": [[3]]}\n}');
    expect(read.ok && Object.fromEntries(read.positions)).toEqual({
      '["a b"]': { line: 2, column: 3 },
      '["a b"][0]': { line: 2, column: 11 },
      '["a b"][1]': { line: 3, column: 5 },
      '["a b"][1].c': { line: 3, column: 6 },
      d: { line: 4, column: 3 },
      'd.e': { line: 4, column: 9 },
      'd.e[0]': { line: 4, column: 15 },
      'd.e[0][0]': { line: 4, column: 16 },
    });
  });

  it('keeps a key that has a meaning in JavaScript as an own key', () => {
    const read = readJsonc('{"__proto__": {"a": 1}}');
    expect(read.ok && Object.keys(Object(read.value))).toEqual(['__proto__']);
    expect(read.ok && Object.getPrototypeOf(read.value)).toBe(Object.prototype);
  });

  it('reads what JSON.parse reads, with the same value', () => {
    const values = fc.oneof(fc.json(), fc.json({ depthSize: 'large' }));
    fc.assert(
      fc.property(values, (text) => {
        const read = readJsonc(text);
        if (!read.ok) expect(read.error.message).toMatch(/twice|limited/);
        else expect(read.value).toEqual(JSON.parse(text));
      }),
      { numRuns: 500 },
    );
  });

  it('refuses a damaged text that JSON.parse refuses, unless comments and trailing commas make it JSONC', () => {
    const damaged = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom('', '"', '}', '\\', '0', '-', ' ', '\u0001', '\u00a0', '\u2028'))
      .map(([text, at, extra]) => text.slice(0, at % (text.length + 1)) + extra + text.slice(at % (text.length + 1)));
    fc.assert(
      fc.property(fc.oneof(damaged, fc.string()), (text) => {
        const isRead = readJsonc(text).ok;
        if (isRead && !isJson(text)) expect(text).toMatch(/\/[/*]|,[\s]*[\]}]/);
      }),
      { numRuns: 1000 },
    );
  });

  it('[P8] refuses nesting that would exhaust the stack, however deep', () => {
    const of = (depth: number) => readJsonc('['.repeat(depth) + ']'.repeat(depth));
    expect(of(100).ok).toBe(true);
    for (const depth of [101, 1_000_000])
      expect(of(depth)).toEqual({
        ok: false,
        error: { line: 1, column: 101, message: 'nesting is limited to 100 levels' },
      });
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
