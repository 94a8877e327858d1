import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fixtureKinds, type ReadyServer, type ServerKind } from '../integration/server-kinds.ts';
import { type Scenarios, scenarios2025 } from './scenarios.ts';
import { type Check, installSuite, requirementsOfSuite, runSuite, type SuiteRun, suiteNodeName } from './suite.ts';

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
  { revision, required, unscored, impossible = [] }: Scenarios = scenarios2025,
  kinds: readonly Pick<ServerKind, 'name' | 'ready'>[] = fixtures,
): void {
  const title = `the conformance suite for ${revision}, on ${suiteNodeName}, against ${tested} on ${process.version}`;
  // Side by side, since the scenarios mostly wait, each for its own server.
  describe.concurrent.each(kinds)(`${title}, in front of $name`, ({ ready }) => {
    let server: ReadyServer | undefined;
    let endpoint: Tested | undefined;
    let suite: SuiteRun;

    beforeAll(async () => {
      await installSuite();
      server = await ready();
      endpoint = await start(server);
      const expected = impossible.map(([scenario, check]) => `${scenario}:${check}`);
      suite = await runSuite(endpoint.url, revision, expected);
    }, installMs + suiteMs);
    afterAll(async () => {
      await endpoint?.stop();
      await server?.stop();
    });

    test(`requires the ${required.length} scenarios that are tested here`, async () => {
      expect((await requirementsOfSuite(revision)).sort()).toEqual([...required].sort());
    });

    test('ran every scenario and ended with 0', () => {
      const ran = [...suite.checks.keys()];
      expect(ran).toEqual(expect.arrayContaining([...required, ...unscored]));
      expect(suite.exitCode, suite.output).toBe(0);
    });

    test.each(impossible)('%s fails by %s: it %s', (scenario, check) => {
      expect(failuresOf(suite, scenario).map(({ id }) => id)).toEqual([check]);
    });

    const passing = [...required, ...unscored].filter((name) => impossible.every(([scenario]) => scenario !== name));
    test.each(passing)('%s', (scenario) => {
      const checks = suite.checks.get(scenario) ?? [];
      const failures = failuresOf(suite, scenario);
      expect(failures.map(({ id, status, errorMessage }) => `${status} ${id}: ${errorMessage}`)).toEqual([]);
      // A scenario that checked nothing did not pass: the suite itself would count it as passed.
      expect(checks.some(({ status }) => status === 'SUCCESS')).toBe(true);
    });
  });
}

const failuresOf = ({ checks }: SuiteRun, scenario: string): readonly Check[] =>
  (checks.get(scenario) ?? []).filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
