import { expect, it } from 'vitest';
import { isKeptText, KeptTexts } from '../../../src/features/result-limits/kept-texts.ts';

const [ada, bob] = [
  { issuer: 'i', subject: 'ada' },
  { issuer: 'i', subject: 'bob' },
];

/** As many names as tests need; the debt of a user is never paid off here. */
function createTexts() {
  const values = new Map<string, Buffer>();
  const debts = new Map<string, number>();
  return new KeptTexts({
    maxBytes: 1,
    values: {
      get: async (_kind, name) => values.get(name),
      set: async (_kind, name, value) => void values.set(name, value),
    },
    rates: {
      use: async (name, costMs) => {
        debts.set(name, (debts.get(name) ?? 0) + costMs);
        return debts.get(name) as number;
      },
    },
    onFailed: (cause) => {
      throw cause;
    },
  });
}

it('a text is for its owner only', async () => {
  const texts = createTexts();
  const uri = (await texts.keep(Buffer.from('secret'), ada)) as string;
  expect(isKeptText(uri)).toBe(true);
  expect((await texts.find(uri, ada))?.toString()).toBe('secret');
  expect((await texts.find(uri, { ...ada, client: '' }))?.toString()).toBe('secret');
  expect(await texts.find(uri, bob)).toBeUndefined();
  expect(await texts.find(uri, {})).toBeUndefined();
});

it('[P8] the texts of a user are bounded, and those of others do not count', async () => {
  const texts = createTexts();
  const large = Buffer.alloc(8 * 1024 * 1024);
  const kept = [];
  for (let time = 0; time < 6; time += 1) kept.push(await texts.keep(large, ada));
  expect(kept.map((uri) => uri !== undefined)).toEqual([true, true, true, true, false, false]);
  expect(await texts.keep(large, bob)).toBeDefined();
  expect(await texts.keep(Buffer.alloc(large.length + 1), bob)).toBeUndefined();
});
