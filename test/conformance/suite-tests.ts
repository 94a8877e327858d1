import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fixtureKinds, type ReadyServer } from '../integration/server-kinds.ts';
import { requiredScenarios, unscoredScenarios } from './scenarios.ts';
import { installSuite, requirementsOfSuite, runSuite, type SuiteRun, suiteNodeName } from './suite.ts';

/** A download of some 60 MB, once. */
const installMs = 300_000;
const suiteMs = 300_000;

/** Servers that differ in how the gateway reads and writes them: by lines, and by HTTP. */
const transports = ['stdio', 'sse', 'http'];
const kinds = fixtureKinds.filter(({ transport }) => transports.includes(transport));

/** What the suite runs against. */
export interface Tested {
  readonly url: string;
  stop(): Promise<unknown>;
}

/** The conformance suite, a test for each of its scenarios, in front of our own fixture on each of `transports`. */
export function testConformance(
  tested: string,
  start: (server: Pick<ReadyServer, 'args' | 'command'>) => Promise<Tested>,
): void {
  const title = `the conformance suite for 2025-11-25, on ${suiteNodeName}, against ${tested} on ${process.version}`;
  describe.each(kinds)(`${title}, in front of $name`, ({ ready }) => {
    let server: ReadyServer | undefined;
    let endpoint: Tested | undefined;
    let suite: SuiteRun;

    beforeAll(async () => {
      await installSuite();
      server = await ready();
      endpoint = await start(server);
      suite = await runSuite(endpoint.url);
    }, installMs + suiteMs);
    afterAll(async () => {
      await endpoint?.stop();
      await server?.stop();
    });

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
