import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Scenarios, scenarios2025 } from './scenarios.ts';
import { installSuite, requirementsOfSuite, runSuite, type SuiteRun, suiteNodeName } from './suite.ts';

/** A download of some 60 MB, once. */
const installMs = 300_000;
const suiteMs = 300_000;

/** What the suite runs against, in front of our own fixture. */
export interface Tested {
  readonly url: string;
  stop(): Promise<unknown>;
}

/** The conformance suite, a test for each of its scenarios. */
export function testConformance(
  tested: string,
  start: () => Promise<Tested>,
  { revision, required, unscored }: Scenarios = scenarios2025,
): void {
  describe(`the conformance suite for ${revision}, on ${suiteNodeName}, against ${tested} on ${process.version}`, () => {
    let endpoint: Tested | undefined;
    let suite: SuiteRun;

    beforeAll(async () => {
      await installSuite();
      endpoint = await start();
      suite = await runSuite(endpoint.url, revision);
    }, installMs + suiteMs);
    afterAll(async () => void (await endpoint?.stop()));

    test(`requires the ${required.length} scenarios that are tested here`, async () => {
      expect((await requirementsOfSuite(revision)).sort()).toEqual([...required].sort());
    });

    test('ran every scenario and ended with 0', () => {
      const ran = [...suite.checks.keys()].filter((scenario) => !scenario.startsWith('tasks-'));
      expect(ran.sort()).toEqual([...required, ...unscored].sort());
      expect(suite.exitCode, suite.output).toBe(0);
    });

    test.each([...required, ...unscored])('%s', (scenario) => {
      const checks = suite.checks.get(scenario) ?? [];
      const complaints = checks
        .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
        .map(({ id, status, errorMessage }) => `${status} ${id}: ${errorMessage}`);
      expect(complaints).toEqual([]);
      // A scenario that checked nothing did not pass: the suite itself would count it as passed.
      expect(checks.some(({ status }) => status === 'SUCCESS')).toBe(true);
    });
  });
}
