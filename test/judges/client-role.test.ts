import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll } from 'vitest';
import { type Check, installSuite, runProgramOfSuite } from '../conformance/suite.ts';
import { type Arm, type Outcome, type Outcomes, testJudge } from './judge.ts';
import { outcomeOf } from './outcome-of.ts';

const client = fileURLToPath(new URL('client.mjs', import.meta.url));

/**
 * The scenarios of the suite for clients, without those of OAuth (`auth/*`): the gateway passes no server's OAuth on to its clients
 * (docs/credentials.md).
 */
const scenarios2025 = [
  'initialize',
  'tools_call',
  'elicitation-sep1034-client-defaults',
  'sse-retry',
  'json-schema-2020-12-preservation',
];
const scenarios2026 = [
  'tools_call',
  'request-metadata',
  'sep-2322-client-request-state',
  'http-standard-headers',
  'http-custom-headers',
  'http-invalid-tool-headers',
  'json-schema-ref-no-deref',
  'json-schema-2020-12-preservation',
];

/** @param words the era of the client, and the options of a gateway between it and the mock server */
const armOf = (name: string, revision: string, scenarios: readonly string[], words: string): Arm => ({
  name,
  async run(): Promise<Outcomes> {
    const outcomes = new Map<string, Outcome>();
    for (const scenario of scenarios) outcomes.set(scenario, await runScenario(revision, scenario, words));
    return outcomes;
  },
});

async function runScenario(revision: string, scenario: string, words: string): Promise<Outcome> {
  const results = await mkdtemp(join(tmpdir(), 'gangway-judge-'));
  try {
    const command = `"${process.execPath}" "${client}" ${words}`;
    const options = ['--scenario', scenario, '--spec-version', revision, '--timeout', '60000', '--output-dir', results];
    await runProgramOfSuite(['client', '--command', command, ...options]);
    const [folder = ''] = await readdir(results);
    const checks: readonly Check[] = JSON.parse(await readFile(join(results, folder, 'checks.json'), 'utf8'));
    return outcomeOf(checks);
  } finally {
    await rm(results, { recursive: true, force: true });
  }
}

beforeAll(installSuite);

const on2025 = (name: string, words: string): Arm => armOf(name, '2025-11-25', scenarios2025, words);
testJudge('Conformance suite, client role, 2025-11-25', on2025('direct', 'legacy'), [
  on2025('legacy client', 'legacy --through'),
  on2025('modern client, `--isolation shared`', 'modern --through --isolation shared'),
]);

const on2026 = (name: string, words: string): Arm => armOf(name, '2026-07-28', scenarios2026, words);
testJudge('Conformance suite, client role, 2026-07-28', on2026('direct', 'modern'), [
  on2026('modern client', 'modern --through'),
  on2026('modern client, `--era modern`', 'modern --through --era modern'),
  on2026('legacy client, `--era modern`', 'legacy --through --era modern'),
]);
