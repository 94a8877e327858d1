import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hardening } from './hardening.ts';
import { openIssues } from './open-issues.ts';
import type { Requirement } from './requirement.ts';
import { requirements } from './requirements.ts';

/** A citation: `[R7.04]`, `[F16]`, `[B11b]`, `[S-03]` in the name of a test. */
const citation = /\[((?:R\d\.\d\d|[FBSA]\d\d|[A-Z]-\d\d)[a-z]?)\]/g;

/**
 * The ids that a test file cites. Only strings count, since the names of tests are strings, also in tables of cases; a
 * comment that mentions an id proves nothing.
 */
function citedIn(text: string): string[] {
  const tokens = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g;
  const strings = (text.match(tokens) ?? []).filter((token) => !token.startsWith('/'));
  return strings.flatMap((string) => [...string.matchAll(citation)].map(([, id = '']) => id));
}

/** What is wrong with a list and the ids that tests cite, one sentence each. */
function faultsOf(list: readonly Requirement[], cited: ReadonlySet<string>, issues: readonly string[]): string[] {
  const ids = new Set(list.map(({ id }) => id));
  const twice = list.filter(({ id }, index) => list.findIndex((other) => other.id === id) !== index);
  const uncited = list.filter(
    ({ id, deferredTo, untested }) => deferredTo === undefined && untested === undefined && !cited.has(id),
  );
  const astray = list.filter(({ deferredTo }) => deferredTo !== undefined && !issues.includes(deferredTo));
  return [
    ...twice.map(({ id }) => `${id} stands twice in the list`),
    ...uncited.map(({ id, text }) => `${id} is cited by no test: ${text}`),
    ...astray.map(({ id, deferredTo }) => `${id} is deferred to what is no open issue: ${deferredTo}`),
    ...[...cited].filter((id) => !ids.has(id)).map((id) => `${id} is cited by a test, but is no requirement`),
  ];
}

const testFolder = join(import.meta.dirname, '..');
const ownFolder = 'requirements';

/** The files of tests in a folder; not those of the packages that the conformance suite brings. */
const testFilesIn = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'node_modules' || entry.name === ownFolder ? [] : testFilesIn(path);
    return /\.(ts|mts)$/.test(entry.name) ? [path] : [];
  });

const packagesFolder = join(testFolder, '../packages');
const testFiles = [
  testFolder,
  ...readdirSync(packagesFolder).map((name) => join(packagesFolder, name, 'test')),
].flatMap(testFilesIn);

const all: readonly Requirement[] = [...requirements, ...hardening];

describe('the requirements', () => {
  it('are each cited by a test or deferred to an open issue, and each citation exists', () => {
    const cited = new Set(testFiles.flatMap((file) => citedIn(readFileSync(file, 'utf8'))));
    const deferred = all.filter(({ deferredTo }) => deferredTo !== undefined);
    const due = all.length - deferred.length;
    const met = all.filter(({ id, deferredTo }) => deferredTo === undefined && cited.has(id)).length;
    process.stdout.write(`requirements: ${met} of ${due} cited, ${deferred.length} deferred to later issues\n`);
    expect(faultsOf(all, cited, Object.values(openIssues))).toEqual([]);
  });

  it('are numbered without a gap in each list, parts behind their line', () => {
    const lines = all.map(({ id }) => id).filter((id) => !/[a-z]$/.test(id));
    const listOf = (id: string): string => id.slice(0, -2);
    for (const name of new Set(lines.map(listOf))) {
      const ids = lines.filter((id) => listOf(id) === name);
      expect(ids).toEqual(ids.map((_, index) => `${name}${String(index + 1).padStart(2, '0')}`));
    }
    for (const { id } of all) expect(lines).toContain(id.replace(/[a-z]$/, ''));
  });
});

describe('the check of requirements', () => {
  const list: readonly Requirement[] = [
    { id: 'R1.01', text: 'one' },
    { id: 'R1.02', text: 'two', deferredTo: openIssues.proof },
  ];
  const issues = [openIssues.proof];

  it('passes what is cited or deferred, also what is both', () => {
    expect(faultsOf(list, new Set(['R1.01']), issues)).toEqual([]);
    expect(faultsOf(list, new Set(['R1.01', 'R1.02']), issues)).toEqual([]);
  });

  it.each([
    ['a requirement that nothing cites', list, [], issues, 'R1.01 is cited by no test: one'],
    ['a citation that is no requirement', list, ['R1.01', 'R1.99'], issues, 'R1.99 is cited by a test'],
    ['a deferral to a closed issue', list, ['R1.01'], [], 'R1.02 is deferred to what is no open issue'],
    ['an id that stands twice', [...list, ...list.slice(1)], ['R1.01'], issues, 'R1.02 stands twice'],
  ])('finds %s', (_, given, cited, open, fault) => {
    expect(faultsOf(given, new Set(cited), open)).toEqual([expect.stringContaining(fault)]);
  });

  it('finds citations in names of tests and tables, and nowhere else', () => {
    const text = [
      "it('[R1.01] [F02] does this', () => {});",
      "it.each([['[B11b] a case', 1]])('%s', () => {});",
      'it(`[S03] this`, () => {});',
      "// it('[R1.04] was here once')",
      "/* '[R1.05]' */",
      "const url = 'http://127.0.0.1/'; it('[A06] after a URL', () => {});",
      'const value = table[R1.06];',
    ].join('\n');
    expect(citedIn(text)).toEqual(['R1.01', 'F02', 'B11b', 'S03', 'A06']);
  });
});
