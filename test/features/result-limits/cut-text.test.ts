import { describe, expect, it } from 'vitest';
import { boundaryIn, longTextsIn } from '../../../src/features/result-limits/cut-text.ts';

describe('the end of a cut text', () => {
  it.each([
    ['plain ASCII', 'abcdefgh'],
    ['characters of several bytes', 'aé€😀bü'],
    ['escapes', 'a\\n\\t\\"\\\\b'],
    ['runs of backslashes', '\\\\\\\\\\\\u0041'],
    ['escapes of four digits', '\\u0041\\u20ac'],
    ['pairs of escapes', 'x\\ud83d\\ude00y\\uD83D\\uDE00'],
    ['a high surrogate that looks like one behind a backslash', '\\\\ud83d\\ud83d\\ude00'],
  ])('is never within a character: %s', (_, inside) => {
    const text = Buffer.from(inside);
    const whole = JSON.parse(`"${inside}"`) as string;
    let last = 0;
    for (let max = 0; max <= text.length + 2; max += 1) {
      const at = boundaryIn(text, max);
      expect(at).toBeLessThanOrEqual(max);
      expect(at).toBeGreaterThanOrEqual(last);
      last = at;
      const cut = text.toString('utf8', 0, at);
      expect(cut).not.toContain('\ufffd');
      const read = JSON.parse(`"${cut}"`) as string;
      expect(whole.startsWith(read)).toBe(true);
      expect(() => encodeURIComponent(read)).not.toThrow(); // no half of a pair
    }
    expect(last).toBe(text.length);
  });
});

it('only long texts of a list of contents are found, where they are', () => {
  const long = 'x'.repeat(100);
  const content = [
    { type: 'text', text: 'short' },
    { type: 'text', text: long, annotations: {} },
    { type: 'image', data: long },
    { type: 'resource', resource: { text: long } },
  ];
  const message = Buffer.from(JSON.stringify({ id: 1, result: { content } }));
  const found = longTextsIn(message, ['result', 'content'], 50);
  expect(found.map(({ start, end }) => message.toString('utf8', start, end))).toEqual([long]);
  expect(longTextsIn(Buffer.from('{"result":{"content":"x"}}'), ['result', 'content'], 1)).toEqual([]);
});
