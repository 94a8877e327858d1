import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { requiredScenarios, unscoredScenarios } from './scenarios.ts';
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
export function testConformance(tested: string, start: () => Promise<Tested>): void {
  describe(`the conformance suite for 2025-11-25, on ${suiteNodeName}, against ${tested} on ${process.version}`, () => {
    let endpoint: Tested | undefined;
    let suite: SuiteRun;

    beforeAll(async () => {
      await installSuite();
      endpoint = await start();
      suite = await runSuite(endpoint.url);
    }, installMs + suiteMs);
    afterAll(async () => void (await endpoint?.stop()));

    test('requires the 30 scenarios that are tested here', async () => {
      expect(requiredScenarios).toHaveLength(30);
      expect((await requirementsOfSuite()).sort()).toEqual([...requiredScenarios].sort());
    });

    test('ran every scenario and ended with 0', () => {
      expect([...suite.checks.keys()].sort()).toEqual([...requiredScenarios, ...unscoredScenarios].sort());
      expect(suite.exitCode, suite.output).toBe(0);
    });

    test.each([...requiredScenarios, ...unscoredScenarios])('%s', (scenario) => {
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
