import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { root } from '../support/gateway.ts';
import { descendantsOf, type ProcessInfo, stillAlive, waitUntilGone } from '../support/processes.ts';

/** Starts a gateway as npx does: by a shell that passes on no signal. Resolves when the gateway is ready. */
async function startByShell(environment: Readonly<Record<string, string>>) {
  const line = `"${process.execPath}" "${root}dist/main.js" --port 0 --admin-port 0 --warm 1 -- cat; exit`;
  const shell = spawn('/bin/sh', ['-c', line], {
    env: { PATH: process.env['PATH'], XDG_RUNTIME_DIR: process.env['XDG_RUNTIME_DIR'], ...environment },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let processes: readonly ProcessInfo[] = [];
  onTestFinished(async () => {
    shell.kill('SIGKILL');
    for (const { pid } of await stillAlive(processes)) process.kill(pid, 'SIGKILL');
  });
  for await (const text of createInterface({ input: shell.stdout })) if (text.startsWith('Ready')) break;
  shell.stdout.resume();
  processes = await descendantsOf(shell.pid ?? 0);
  expect(processes.some(({ command }) => command.includes('main.js'))).toBe(true);
  return { shell, processes };
}

test('[P10] a gateway ends, with its servers, when the npx that started it was ended', async () => {
  const { shell, processes } = await startByShell({
    npm_lifecycle_event: 'npx',
    npm_lifecycle_script: "'mcp-gangway'",
  });
  shell.kill('SIGTERM');
  await once(shell, 'exit');
  await waitUntilGone(processes);
});

test.each([
  ['without npx', {}],
  ['with a program that npx started', { npm_lifecycle_event: 'npx', npm_lifecycle_script: "'pm2'" }],
])('a gateway started %s outlives its parent', async (_, environment) => {
  const { shell, processes } = await startByShell(environment);
  shell.kill('SIGTERM');
  await once(shell, 'exit');
  await delay(2_500); // the gateway of npx looks every second
  expect(await stillAlive(processes)).toEqual(processes);
});
