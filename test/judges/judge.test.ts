import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { root } from '../support/gateway.ts';
import { betterOf, differencesBetween, type Outcome } from './judge.ts';
import { allKnownDifferences, knownDifferences } from './known-differences.ts';
import { withSummary, withTables } from './page.ts';

const outcomes = (...entries: readonly (readonly [string, Outcome])[]) => new Map(entries);

describe('differencesBetween', () => {
  test('names each check that fails only through the gateway, once', () => {
    const direct = outcomes(['a', { passed: 2, failed: ['x'] }], ['b', { passed: 1, failed: [] }]);
    const through = outcomes(['a', { passed: 1, failed: ['x', 'y', 'y'] }], ['b', { passed: 1, failed: [] }]);
    expect(differencesBetween(direct, through)).toEqual(['a: y']);
  });

  test('names a scenario that checks nothing any more, or does not run', () => {
    const direct = outcomes(['b', { passed: 1, failed: [] }], ['a', { passed: 3, failed: [] }]);
    expect(differencesBetween(direct, outcomes(['a', { passed: 0, failed: [] }]))).toEqual([
      'a: no check passes',
      'b: no check passes',
    ]);
  });

  test('names a check that passes directly and is not checked through the gateway, once', () => {
    const direct = outcomes(['a', { passed: 5, passedNames: ['x', 'y', 'y', 'z', 'w'], failed: [] }]);
    const through = outcomes(['a', { passed: 1, passedNames: ['x', 'new'], failed: ['z', 'w (warning)'] }]);
    expect(differencesBetween(direct, through)).toEqual(['a: w (warning)', 'a: y (not checked)', 'a: z']);
    // A judge that only counts has no names to compare.
    const counted = outcomes(['a', { passed: 1, failed: ['z', 'w (warning)'] }]);
    expect(differencesBetween(direct, counted)).toEqual(['a: w (warning)', 'a: z']);
  });

  test('is empty where a check passes as well, but less often: the client sent fewer requests', () => {
    const direct = outcomes(['a', { passed: 3, passedNames: ['x', 'x', 'y'], failed: [] }]);
    const through = outcomes(['a', { passed: 2, passedNames: ['x', 'y'], failed: [] }]);
    expect(differencesBetween(direct, through)).toEqual([]);
  });

  test('is empty where the gateway loses nothing', () => {
    const direct = outcomes(['a', { passed: 1, failed: ['x'] }]);
    expect(differencesBetween(direct, outcomes(['a', { passed: 9, failed: [] }]))).toEqual([]);
  });
});

test('betterOf takes of each scenario the run with fewer failures, also if one run lacks it', () => {
  const first = outcomes(['a', { passed: 1, failed: ['x'] }], ['b', { passed: 2, failed: [] }]);
  const second = outcomes(
    ['a', { passed: 2, failed: [] }],
    ['b', { passed: 1, failed: ['y'] }],
    ['c', { passed: 3, failed: [] }],
  );
  expect([...betterOf(first, second)]).toEqual([
    ['a', { passed: 2, failed: [] }],
    ['b', { passed: 2, failed: [] }],
    ['c', { passed: 3, failed: [] }],
  ]);
});

test('each known difference stands once, with a reason', () => {
  const keys = allKnownDifferences.map(({ judge, arm, difference }) => `${judge}/${arm}/${difference}`);
  expect(new Set(keys).size).toBe(keys.length);
  for (const { reason } of allKnownDifferences) expect(reason.text).toMatch(/^[A-Z].{20,}\.$/s);
});

test('a known difference of each server stands for those that are there', () => {
  const names = ['a', 'b'];
  expect(knownDifferences('Servers of SDKs, STDIO, by the official SDKs', 'the gateway', names)).toEqual([
    'a: SDK 2, server',
    'b: SDK 2, server',
  ]);
});

describe('the results', () => {
  const results = readFileSync(`${root}test/judges/results.md`, 'utf8');
  const page = readFileSync(`${root}docs/conformance.md`, 'utf8');
  const record = (judge: string, arm: string, scenario: string, failed: readonly string[] = []) => ({
    ...{ judge, arm, scenario, failed },
    passed: 2,
  });

  test('have a table for each judge, with an arm in each column', () => {
    const records = [record('J', 'direct', 'b'), record('J', 'STDIO', 'b', ['x']), record('J', 'STDIO', 'a')];
    expect(withTables('', records, 'a day')).toContain(
      [
        '## J\n',
        'Run on a day.\n',
        '| Scenario | direct | STDIO |',
        '|:--|--:|--:|',
        '| all checks | 2, 0 failed | 4, 1 failed |',
        '| a | – | 2 |',
        '| b | 2 | 2, **1 failed** |',
      ].join('\n'),
    );
  });

  test('keep the tables of judges that did not run, in alphabetical order', () => {
    const text = withTables(withTables('', [record('B', 'direct', 's')], '1'), [record('A', 'direct', 's')], '2');
    expect(text.match(/^## .*/gm)).toEqual(['## A', '## B']);
    expect(text.match(/^Run on .*/gm)).toEqual(['Run on 2.', 'Run on 1.']);
    expect(withTables(text, [record('B', 'direct', 's', ['x'])], '3')).toContain('| s | 2, **1 failed** |');
  });

  test('explain each known difference under the table of its judge', () => {
    for (const { judge, arm, difference, reason } of allKnownDifferences) {
      const section = results.split(/^## /m).find((text) => text.startsWith(`${judge}\n`)) ?? '';
      expect(section).toContain(reason.text);
      expect(section).toContain(`- ${arm}: \`${difference}\``);
    }
  });

  test('have a line for each judge in docs/conformance.md, which is the newest', () => {
    const arms = ['direct', 'STDIO', 'HTTP+SSE', 'mcp-proxy'];
    const records = arms.map((arm) => record('J', arm, 's', arm === 'HTTP+SSE' ? ['x'] : []));
    expect(withSummary(page, withTables('', records, 'a day'))).toContain(
      '\n| J | 2, 0 failed | STDIO: 2, 0 failed; HTTP+SSE: 2, 1 failed | 2, 0 failed |\n',
    );
    expect(withSummary(page, results)).toBe(page);
  });
});
