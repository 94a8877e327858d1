import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAst, transformWithEsbuild } from 'vite';
import { describe, expect, it } from 'vitest';
import { cpuMsOf, msHere } from '../../support/cpu-time.ts';

/** A regular expression of `src` or a package, and where it stands. */
interface Found {
  readonly where: string;
  readonly pattern: RegExp;
}

const root = fileURLToPath(new URL('../../..', import.meta.url));
const sources = ['src', 'packages/json-scan/src', 'packages/console/src'];

/** What a parser of the language finds. */
async function regularExpressionsOf(name: string): Promise<Found[]> {
  const found: Found[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) visit(each);
    else if (typeof value === 'object' && value !== null) {
      const { regex } = value as { regex?: { pattern: string; flags: string } };
      if (regex !== undefined) {
        const pattern = new RegExp(regex.pattern, regex.flags);
        found.push({ where: `${name} ${pattern}`, pattern });
      }
      for (const each of Object.values(value)) visit(each);
    }
  };
  const { code } = await transformWithEsbuild(readFileSync(join(root, name), 'utf8'), name);
  visit(parseAst(code));
  return found;
}

const files = sources
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  .filter((name) => name.endsWith('.ts'));
const all = (await Promise.all(files.sort().map(regularExpressionsOf))).flat();

const size = 64 * 1024;
const maxMs = msHere(5);

/**
 * What makes an expression try again and again: its own characters, alone, in pairs and in its own order, over and over,
 * and wrong only at the end.
 */
function worstCases({ source }: RegExp, length: number): string[] {
  const own = [...new Set(source.replace(/\\[wdsbDWSB]/g, 'a1 ').replace(/\\(.)/g, '$1'))].slice(0, 14);
  const words = [
    ...new Set([...own, ...'a0. -/:=\\"\'\n\té']),
    ...own.flatMap((one) => own.slice(0, 3).map((other) => one + other)),
    ...['${a', '${a:', '${', ';q=0', 'a=', '/a', '/.', '[::', '[:]', 'a:1', '\\"', '\r\n', ' #', '1.1-', '@:'],
    source.replace(/[\\^$*+?()[\]{}|]/g, ''),
  ].filter((word) => word !== '');
  const repeat = (word: string) => word.repeat(Math.ceil(length / word.length)).slice(0, length);
  return [
    ...words.map((word) => `${repeat(word)}\0`),
    ...own.flatMap((letter) => [repeat(letter), `"${repeat(letter)}`]),
    `http://${repeat('a')}/`,
    `[${repeat(':')}`,
    `charset="${repeat('utf-8')}`,
  ];
}

/** The longest time that the expression takes on any of its worst cases, and on which; or the first over `enoughMs`. */
function worstOf(pattern: RegExp, length = size, enoughMs = 500): { ms: number; text: string } {
  let worst = { ms: 0, text: '' };
  for (const text of worstCases(pattern, length)) {
    const ms = timeOf(pattern, text);
    if (ms > worst.ms) worst = { ms, text: `${text.slice(0, 20)}…` };
    if (ms > enoughMs) break;
  }
  return worst;
}

/** The machine may be busy: what counts is the processor's time and the best of some tries, and one good one is enough. */
function timeOf(pattern: RegExp, text: string): number {
  let best = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 5 && best >= maxMs && (best < 200 || attempt === 0); attempt++) {
    const ms = cpuMsOf(() => (pattern.global ? text.replace(pattern, '') : pattern.exec(text)));
    best = Math.min(best, ms);
  }
  return best;
}

describe('[S19] [A09] the regular expressions of src', () => {
  it('are found by this test', () => {
    const places = all.map(({ where }) => where).join('\n');
    for (const file of [
      'protocol/wire/event-id.ts',
      'auth/origin-rules.ts',
      'config/options/options.ts',
      'console/src/',
    ])
      expect(places).toContain(file);
    // None is made of text at run time, where this test could not see it.
    for (const name of files) expect(readFileSync(join(root, name), 'utf8'), name).not.toMatch(/\bRegExp\(/);
  });

  it.each([/\s+$/, /\d+x/, /\$\{[^}]*\}/g])('would be found slow if they were like %s', (pattern) => {
    expect(worstOf(pattern, 8 * 1024, maxMs).ms).toBeGreaterThan(maxMs);
  });

  it.each(all.map(({ where, pattern }) => [where, pattern] as const))(
    '%s takes less than 5 ms of a fast machine on 64 KiB',
    (_, pattern) => {
      expect(worstOf(pattern)).toEqual({ ms: expect.toSatisfy((ms: number) => ms < maxMs), text: expect.any(String) });
    },
  );
});
