import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fixtureKinds, type ReadyServer, type ServerKind } from '../integration/server-kinds.ts';
import { type Scenarios, scenarios2025 } from './scenarios.ts';
import { installSuite, requirementsOfSuite, runSuite, type SuiteRun, suiteNodeName } from './suite.ts';

/** A download of some 60 MB, once. */
const installMs = 300_000;
const suiteMs = 300_000;

/** Servers that differ in how the gateway reads and writes them: by lines, and by HTTP. */
const transports = ['stdio', 'sse', 'http'];
const fixtures = fixtureKinds.filter(({ transport }) => transports.includes(transport));

/** What the suite runs against. */
export interface Tested {
  readonly url: string;
  stop(): Promise<unknown>;
}

/** What an endpoint is started with. */
export type TestedServer = Pick<ReadyServer, 'args' | 'command'>;

/**
 * The conformance suite, a test for each of its scenarios, in front of each kind of server.
 */
export function testConformance(
  tested: string,
  start: (server: TestedServer) => Promise<Tested>,
  { revision, required, unscored }: Scenarios = scenarios2025,
  kinds: readonly Pick<ServerKind, 'name' | 'ready'>[] = fixtures,
): void {
  const title = `the conformance suite for ${revision}, on ${suiteNodeName}, against ${tested} on ${process.version}`;
  describe.each(kinds)(`${title}, in front of $name`, ({ ready }) => {
    let server: ReadyServer | undefined;
    let endpoint: Tested | undefined;
    let suite: SuiteRun;

    beforeAll(async () => {
      await installSuite();
      server = await ready();
      endpoint = await start(server);
      suite = await runSuite(endpoint.url, revision);
    }, installMs + suiteMs);
    afterAll(async () => {
      await endpoint?.stop();
      await server?.stop();
    });

    test(`requires the ${required.length} scenarios that are tested here`, async () => {
      expect((await requirementsOfSuite(revision)).sort()).toEqual([...required].sort());
    });

    test('ran every scenario and ended with 0', () => {
      const isKnown = (scenario: string) => !scenario.startsWith('tasks-') || unscored.includes(scenario);
      const ran = [...suite.checks.keys()].filter(isKnown);
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
