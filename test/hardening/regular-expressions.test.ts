import { beforeAll, describe, expect, it } from 'vitest';
import { type Found, findRegularExpressions, worstCases } from './regular-expressions.ts';

const limitMs = 5;

/** From short to long: what is exponential or cubic would never end with the last. */
const lengths = [26, 256, 4 * 1024, 64 * 1024] as const;
const texts = lengths.map((length) => [...worstCases(length)]);

/** The least time of several: what else runs on this machine is not the expression's. */
function leastMs(expression: RegExp, text: string): number {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 10 && least >= limitMs; tries++) {
    const from = performance.now();
    expression.test(text);
    least = Math.min(least, performance.now() - from);
  }
  return least;
}

/** The first text on which an expression takes too long, in words. */
function slowOn({ source, flags }: Pick<Found, 'source' | 'flags'>): string | undefined {
  const expression = new RegExp(source, flags.replace(/[gy]/, '')); // one search from the beginning
  for (const text of texts.flat()) {
    const ms = leastMs(expression, text);
    if (ms >= limitMs)
      return `${ms.toFixed()} ms on ${text.length}: ${JSON.stringify([text.slice(0, 8), text.slice(-4)])}`;
  }
  return undefined;
}

describe('regular expressions', () => {
  let all: Awaited<ReturnType<typeof findRegularExpressions>>;
  beforeAll(async () => {
    all = await findRegularExpressions();
  });

  it('are found: those of this test’s own sample', () => {
    const sources = new Map(all.found.map(({ file, source }) => [source, file]));
    expect(sources.get('^[\\x21-\\x7e]{1,128}$')).toBe('src/http/endpoint.ts');
    expect(all.found.length).toBeGreaterThan(50);
  });

  it('[S19] [A09] none takes 5 ms for 64 KiB of anything, wherever it is used', { timeout: 300_000 }, () => {
    const different = new Map(all.found.map((found) => [`/${found.source}/${found.flags}`, found]));
    const slow = [...different].flatMap(([shown, found]) => {
      const on = slowOn(found);
      return on === undefined ? [] : [`${found.file}: ${shown}: ${on}`];
    });
    expect(slow).toEqual([]);
  });

  it('[S19] [A09] none is made of text while the program runs', () => {
    expect(all.made).toEqual([]);
  });

  it.each(['^(a+)+$', '\\s+$', 'a*a*b', '(?:https?://)?[a-z.]+(?:/[a-z]*)*$'])(
    'this test finds a careless one: %s',
    (source) => expect(slowOn({ source, flags: '' })).toBeDefined(),
  );
});
