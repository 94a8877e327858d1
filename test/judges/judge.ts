// A judge is a foreign suite or a foreign client. It runs against a server directly and through the gateway, and the outcomes are
// compared.
import { appendFileSync } from 'node:fs';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { knownDifferences } from './known-differences.ts';

/** The outcome of one scenario: how many checks passed, and the names of those that failed. */
export interface Outcome {
  readonly passed: number;
  /** The names of the checks that passed, if the judge names them. Several checks can have the same name. */
  readonly passedNames?: readonly string[];
  readonly failed: readonly string[];
}

/** The outcomes of a run, by the names of the scenarios. */
export type Outcomes = ReadonlyMap<string, Outcome>;

/** One way from the judge to a server, as a column of the published table. */
export interface Arm {
  readonly name: string;
  /** @param again the scenarios that a second run is for; an arm may run the others as well */
  run(again?: ReadonlySet<string>): Promise<Outcomes>;
  /** True for a gateway of somebody else: its outcomes are published, and not expected to be any. */
  readonly isPeer?: boolean;
}

/** One cell of a published table: a line of the file of records. */
export interface JudgeRecord extends Outcome {
  readonly judge: string;
  readonly arm: string;
  readonly scenario: string;
  /** The text of the cell, if it is not the number of checks. Failures are added to it. */
  readonly cell?: string;
}

/** A part of the names of the only rows that this run is for. */
export const only = process.env['JUDGES_ONLY']?.split(',');

/** True if this run is for the row of this name. */
export const isAsked = (name: string): boolean => only?.some((part) => name.includes(part)) ?? true;

declare module 'vitest' {
  interface ProvidedContext {
    /** The file that gets the records. */
    readonly records: string;
  }
}

/**
 * Runs a judge directly and on each other arm, and keeps every outcome. A test fails if an arm loses something that the direct
 * arm has and that is not a known difference; and if a known difference does not show any more.
 */
export function testJudge(judge: string, direct: Arm, arms: readonly Arm[]): void {
  describe(judge, () => {
    let expected: Outcomes;
    beforeAll(async () => {
      expected = await direct.run();
      record(judge, direct.name, expected);
    });

    test(`${direct.name} passes checks`, () => {
      expect([...expected.values()].some(({ passed }) => passed > 0)).toBe(true);
    });

    test.each(arms.map((arm) => [arm.name, arm] as const))('%s', async (_name, arm) => {
      const known = knownDifferences(judge, arm.name, [...expected.keys()]).filter(
        (text) => only === undefined || expected.has(scenarioOf(text)),
      );
      const isAsKnown = (outcomes: Outcomes): boolean =>
        differencesBetween(expected, outcomes).join('\n') === known.join('\n');
      let outcomes = await arm.run();
      // Some scenarios have deadlines of half a second: a busy machine misses them at times, but seldom twice.
      if (arm.isPeer !== true && !isAsKnown(outcomes)) {
        const unexpected = differencesBetween(expected, outcomes).filter((difference) => !known.includes(difference));
        const again = new Set(unexpected.map(scenarioOf));
        outcomes = betterOf(outcomes, await arm.run(again.size > 0 ? again : undefined));
      }
      record(judge, arm.name, outcomes);
      if (arm.isPeer !== true) expect(differencesBetween(expected, outcomes)).toEqual(known);
    });
  });
}

/** The scenario that a difference names. A run can leave scenarios out. */
const scenarioOf = (difference: string): string => difference.slice(0, difference.lastIndexOf(': '));

function record(judge: string, arm: string, outcomes: Outcomes): void {
  for (const [scenario, { passedNames: _, ...outcome }] of outcomes) {
    keep({ judge, arm, scenario, ...outcome });
  }
}

/** Adds one cell to the published tables. */
export function keep(line: JudgeRecord): void {
  appendFileSync(inject('records'), `${JSON.stringify(line)}\n`);
}

/** The outcomes of two runs: of each scenario the one with fewer failures. */
export const betterOf = (first: Outcomes, second: Outcomes): Outcomes =>
  new Map(
    [...first, ...second].map(([scenario, outcome]) => {
      const [one = outcome, other = outcome] = [first.get(scenario), second.get(scenario)];
      return [scenario, other.failed.length < one.failed.length ? other : one];
    }),
  );

/**
 * What the direct run has and the other one lacks, in alphabetical order: `<scenario>: <check>`. A check that passes
 * directly and does not run through the gateway is one too, since nobody knows whether it would pass.
 */
export function differencesBetween(direct: Outcomes, through: Outcomes): string[] {
  const differences = [...direct].flatMap(([scenario, { passed, failed, passedNames = [] }]) => {
    const other = through.get(scenario) ?? { passed: 0, failed: [] };
    const lost = other.failed.filter((check) => !failed.includes(check));
    if (lost.length === 0 && passed > 0 && other.passed === 0) return [`${scenario}: no check passes`];
    const seen = new Set([...(other.passedNames ?? passedNames), ...other.failed]);
    const unseen = passedNames.filter((check) => !seen.has(check) && !seen.has(`${check} (warning)`));
    return [...lost, ...unseen.map((check) => `${check} (not checked)`)].map((check) => `${scenario}: ${check}`);
  });
  return [...new Set(differences)].sort();
}
