import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { root } from '../support/gateway.ts';

it.each(['config schema', '--help all', 'completion bash'])('%s ends quietly if its reader has enough', (command) => {
  const line = `"${process.execPath}" "${root}dist/main.js" ${command} | head -c 10`;
  const { stdout, stderr } = spawnSync('bash', ['-c', `set -o pipefail; ${line}`], { encoding: 'utf8' });
  expect(stdout).toHaveLength(10);
  expect(stderr).toBe('');
});
