import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { root } from '../support/gateway.ts';

const correct = 'Correct the configuration; see mcp-gangway --help.';
const seeHelp = 'See mcp-gangway --help.';

it.each([
  ['--port x -- cat', `The gateway was not started. ${correct}`],
  ['check --port x -- cat', correct],
  ['config print --port x -- cat', correct],
  ['health --port x', correct],
  ['completion bsh', seeHelp],
  ['key', seeHelp],
])('%s ends with 2, a fault, and what to do next', (line, last) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`${root}dist/main.js`, ...line.split(' ')], {
    encoding: 'utf8',
  });
  const lines = stderr.trimEnd().split('\n');
  expect(lines.at(-1)).toBe(last);
  expect(lines.length).toBeGreaterThan(1);
  expect(stdout).toBe('');
  expect(status).toBe(2);
});
