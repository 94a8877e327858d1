import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { helpForCommand, helpForText, helpIfEnded, helpIfSilent } from '../../../../src/core/ops/health/start-help.ts';

/** What Node.js writes before it ends. */
const outputOfNode = (...args: string[]): string[] => spawnSync(process.execPath, args).stderr.toString().split('\n');

it('names the cause if Node.js did not find the file of the server', () => {
  expect(helpIfEnded(outputOfNode('/none/server.mjs'))).toMatch(/^Node\.js did not find the file\..*--cwd/);
});

it('does not blame the path for a missing dependency of a file that exists', () => {
  const output = outputOfNode('--input-type=module', '-e', 'import "no-such-package"');
  expect(output.join('\n')).toContain('no-such-package');
  expect(helpIfEnded(output)).toMatch(/^Correct the cause that the server's output/);
});

it('names the cause if npm did not find the package', () => {
  const output = ['npm error code E404', 'npm error 404 Not Found - GET https://registry.example/no-such-server'];
  expect(helpIfEnded(output)).toBe('npm did not find the package. Correct its name.');
});

it('advises to run the command if the server wrote nothing', () => {
  expect(helpIfEnded([])).toMatch(/^Run the command manually to see what is missing\..*--env/);
});

it.each([
  ['python', ['python3.12', 'server.py'], true],
  ['a script of its own', ['/srv/server.py'], true],
  ['uvx', ['uvx', 'mcp-server-time'], true],
  ['python in a shell', ['sh', '-c', '/usr/bin/python3'], true],
  ['node', ['node', 'server.mjs'], false],
  ['npx', ['npx', '-y', 'a-server'], false],
  ['a URL', [], false],
])('names PYTHONUNBUFFERED for a silent server only where Python is run: %s', (_, command, isPython) => {
  expect(helpForCommand(helpIfSilent, command).includes('PYTHONUNBUFFERED=1')).toBe(isPython);
  expect(helpForCommand(helpIfEnded([]), command)).not.toContain('PYTHONUNBUFFERED');
});

it.each([
  ['the framing of the Language Server Protocol', ['Content-Length: 120'], true, /header before each message/],
  ['a message over several lines', ['{', '  "jsonrpc": "2.0",'], false, /one line/],
  ['a line that does not end', ['{"jsonrpc":"2.0"'], true, /line feed/],
  ['a menu', ['1) start', '2) help'], false, /menu or a prompt/],
])('recognises %s on stdout', (_, lines, isUnfinished, help) => {
  expect(helpForText(lines, isUnfinished)).toMatch(help);
});
