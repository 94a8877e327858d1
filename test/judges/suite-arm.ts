import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Check, runProgramOfSuite } from '../conformance/suite.ts';
import type { Arm, Outcome } from './judge.ts';
import { outcomeOf } from './outcome-of.ts';

/** Options of an arm. */
export interface SuiteArmOptions {
  readonly name: string;
  /** The program that the suite starts as the client. */
  readonly client: string;
  /** Undefined for scenarios that belong to no revision. */
  readonly revision: string | undefined;
  readonly scenarios: readonly string[];
  /** The era of the client, and the options of a gateway between it and the mock server. */
  readonly words: string;
}

/** An arm of the suite in the client role: each scenario has a mock server, to which the client connects. */
export const suiteArm = ({ name, scenarios, ...how }: SuiteArmOptions): Arm => ({
  name,
  async run() {
    const outcomes = new Map<string, Outcome>();
    for (const scenario of scenarios) outcomes.set(scenario, await runScenario(scenario, how));
    return outcomes;
  },
});

async function runScenario(
  scenario: string,
  { client, revision, words }: Pick<SuiteArmOptions, 'client' | 'revision' | 'words'>,
): Promise<Outcome> {
  const results = await mkdtemp(join(tmpdir(), 'gangway-judge-'));
  try {
    const command = `"${process.execPath}" "${client}" ${words}`;
    const ofRevision = revision === undefined ? [] : ['--spec-version', revision];
    const options = ['--scenario', scenario, ...ofRevision, '--timeout', '60000', '--output-dir', results];
    await runProgramOfSuite(['client', '--command', command, ...options]);
    // The name of a scenario can have a folder.
    const parent = join(results, dirname(scenario));
    const [folder = ''] = await readdir(parent);
    const checks: readonly Check[] = JSON.parse(await readFile(join(parent, folder, 'checks.json'), 'utf8'));
    return outcomeOf(checks);
  } finally {
    await rm(results, { recursive: true, force: true });
  }
}
