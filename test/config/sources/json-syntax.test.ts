import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findJsonSyntaxError } from '../../../src/config/sources/json-syntax.ts';

describe('findJsonFault', () => {
  it.each([
    ['', 1, 1, 'the text ends, but a value is expected'],
    ['{\n  "a": 1,\n}', 3, 1, 'a key in double quotes after the comma is expected here'],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3, 'a comma or } is expected here'],
    ['[1,]', 1, 4, 'a value after the comma is expected here'],
    ['{"a" 1}', 1, 6, 'a colon is expected here'],
    ['{a: 1}', 1, 2, 'a key in double quotes is expected here'],
    ['{"a": tru}', 1, 7, 'a value is expected here'],
    ['{"a": 1', 1, 8, 'the text ends, but a comma or } is expected'],
    ['{\n// why\n"a": 1}', 2, 1, 'JSON has no comments; remove this comment'],
    ['["a\nb"]', 1, 4, '\\n or another escape, not a raw control character, is expected here'],
    ['["a\\x"]', 1, 4, 'an escape such as \\n, \\" or \\u0041 is expected here'],
    ['["a', 1, 4, 'the text ends, but the closing quote is expected'],
    ['{} x', 1, 4, 'the end of the text is expected here'],
    ['{"a": 1,\n "\\u0061": 2}', 2, 2, 'this key appears twice in its object'],
  ])('%j: %i:%i %s', (text, line, column, message) => {
    expect(findJsonSyntaxError(text)).toEqual({ line, column, message });
  });

  it('takes what JSON.parse takes and refuses what it refuses', () => {
    const damaged = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '"', '}', '\\', '0', '-', ' ', '\u0001'))
      .map(([text, at, extra]) => text.slice(0, at % (text.length + 1)) + extra + text.slice(at % (text.length + 1)));
    fc.assert(
      fc.property(fc.oneof(fc.json(), damaged, fc.string()), (text) => {
        const fault = findJsonSyntaxError(text);
        if (fault?.message !== 'this key appears twice in its object') expect(fault === undefined).toBe(isJson(text));
      }),
      { numRuns: 1000 },
    );
  });

  it('refuses nesting that would exhaust the stack', () => {
    expect(findJsonSyntaxError('['.repeat(1_000_000))?.message).toMatch(/at most 100 levels/);
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
