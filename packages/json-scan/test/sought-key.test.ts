import { expect, it } from 'vitest';
import { costOf } from '../../../test/support/cpu-time.ts';
import { SoughtKey } from '../src/sought-key.ts';

const tools = new SoughtKey('tools');
const isIn = (text: string): boolean => tools.mayBeIn(Buffer.from(text));

it.each([
  '{"tools":[]}',
  '{"\\u0074ools":[]}',
  '{"tool\\u0073" :[]}',
  '{"to\\u006Fls":[]}',
  '{"\\u0074\\u006f\\u006f\\u006c\\u0073":1}',
])('finds a key with and without escapes: %s', (text) => {
  expect(isIn(text)).toBe(true);
});

it.each([
  '{"tool":"s"}',
  '{"a":"the \\"tools\\" of a server"}',
  '{"a":"\\u003ctools\\u003e"}',
  '{"a":"\\u0074ool"}',
  `{"a":"${'\\u003c'.repeat(100_000)}"}`,
])('does not find it elsewhere: %.40s', (text) => {
  expect(isIn(text)).toBe(false);
});

it('[G-03] [P8] costs less than to read the text, whatever it is made of', () => {
  const maxCost = 15; // a hundred, if all escapes are resolved
  for (const piece of ['\\u0074', '\\u0074ools', '\\u003c', '"tools\\"', '\\\\'])
    for (const bytes of [900_000, 7_500_000]) {
      const text = Buffer.from(`{"a":"${piece.repeat(bytes / piece.length)}"}`);
      expect(costOf(() => void tools.mayBeIn(text), maxCost)).toBeLessThan(maxCost);
    }
});
