// Clients of SDKs that know tasks, at the gateway: in front of a server without tasks, of one with the tasks of 2025-11-25,
// and of a server of 2026-07-28 with the extension.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { modernFixture, root, startGateway } from '../support/gateway.ts';
import { isAsked, keep } from './judge.ts';
import { canRun, installSdks, taskClients } from './sdks/sdks.ts';

const run = promisify(execFile);
const judge = 'SDKs with tasks';
const clientLimitMs = 60_000;

const slowTools = [process.execPath, `${root}test/fixtures/slow-tools.mjs`];
const servers = [
  ['a server without tasks', slowTools, ['2026-07-28']],
  ['a server of 2025-11-25 with tasks', [...slowTools, '--tasks'], ['2025-11-25', '2026-07-28']],
  ['a server of 2026-07-28 with tasks', [...modernFixture, '--tasks'], ['2025-11-25', '2026-07-28']],
] as const;
/** The tools, and what they say in the end. The second one asks. */
const called = [
  ['slow_compute', 'computed'],
  ['confirm_delete', 'deleted'],
] as const;

const available = taskClients.filter((client) => canRun(client) && isAsked(client.name));
beforeAll(() => installSdks(available), 1_800_000);

for (const client of taskClients) {
  for (const [name, command, revisions] of servers) {
    const isAsked = revisions.some((revision) => revision === client.revision);
    test.skipIf(!available.includes(client) || !isAsked)(
      `${client.name} at ${name}`,
      async () => {
        await using gateway = await startGateway({ command, args: ['--defaults.tasks.after', '100ms'] });
        const tools = called.slice(0, client.answers ? 2 : 1);
        const [program = '', ...words] = client.command(
          gateway.url,
          tools.map(([tool]) => tool),
        );
        const { stdout } = await run(program, words, { timeout: clientLimitMs });
        const lines = stdout.trim().split('\n');
        const failed = tools
          .filter(([, text], index) => !lines[index]?.includes('"completed"') || !lines[index]?.includes(`"${text}"`))
          .map(([tool]) => tool);
        keep({ judge, arm: name, scenario: client.name, passed: tools.length - failed.length, failed });
        expect(failed, stdout).toEqual([]);
      },
      2 * clientLimitMs,
    );
  }
}
