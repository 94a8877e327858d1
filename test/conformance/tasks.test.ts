import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { type Check, installSuite, runProgramOfSuite } from './suite.ts';

/**
 * The scenarios of the extension for tasks, and how many checks each has. `tasks-required-task-error` is for tools that
 * refuse to run without a task: a server without tasks has none. `tasks-status-notifications` checks nothing.
 */
const scenarios: readonly (readonly [string, number])[] = [
  ['tasks-lifecycle', 9],
  ['tasks-capability-negotiation', 5],
  ['tasks-wire-fields', 4],
  ['tasks-request-state-removal', 3],
  ['tasks-mrtr-input', 4],
  ['tasks-request-headers', 5],
  ['tasks-dispatch-and-envelope', 9],
  ['tasks-mrtr-composition', 2],
];

describe('the tasks that the gateway makes of calls to a legacy server without tasks', () => {
  let gateway: Gateway;
  beforeAll(async () => {
    await installSuite();
    const command = [process.execPath, `${root}test/fixtures/slow-tools.mjs`];
    gateway = await startGateway({ command, args: ['--defaults.tasks.after', '100ms'] });
  }, 300_000);
  afterAll(() => gateway?.stop());

  test.each(scenarios)('pass the scenario %s of the official suite', async (scenario, count) => {
    const results = await mkdtemp(join(tmpdir(), 'gangway-conformance-'));
    onTestFinished(() => rm(results, { recursive: true, force: true }));
    // The suite knows no revision of an extension, and would skip it.
    const options = ['--url', gateway.url, '--scenario', scenario, '--force', '--output-dir', results];
    const { output } = await runProgramOfSuite(['server', ...options]);
    const [folder = ''] = await readdir(results);
    const checks = JSON.parse(await readFile(join(results, folder, 'checks.json'), 'utf8')) as Check[];
    expect(
      checks.filter(({ status }) => status !== 'SUCCESS' && status !== 'INFO'),
      output,
    ).toEqual([]);
    expect(checks).toHaveLength(count);
  });
});
