import { expect, test } from 'vitest';
import { readConfiguration } from '../../../src/config/config.ts';

const read = (server: object) =>
  readConfiguration({
    argv: ['--config', 'f.json'],
    env: {},
    readFile: () => JSON.stringify({ mcpServers: { a: { command: 'node', args: ['a.js'], ...server } } }),
  });

test.each<[object, string]>([
  [{ allowTools: ['@readOnly'] }, 'mcpServers.a.allowTools[0]'],
  [{ denyTools: [''] }, 'mcpServers.a.denyTools[0]'],
  [{ denyPrompts: ['@readOnlyHint'] }, 'mcpServers.a.denyPrompts[0]'],
  [{ tools: { a: { nam: 'b' } } }, 'mcpServers.a.tools.a.nam'],
  [{ tools: { a: { name: 'b c' } } }, 'mcpServers.a.tools.a.name'],
  [{ tools: { a: { name: 'c' }, b: { name: 'c' } } }, 'mcpServers.a.tools'],
  [{ tools: ['a'] }, 'mcpServers.a.tools'],
])('refuses the filters %j, and names their place', (server, path) => {
  const result = read(server);
  expect(result.ok ? [] : result.faults.map((fault) => fault.path)).toEqual([`f.json: ${path}`]);
});

test('reads filters of the file, and changes of tools as JSON on the command line', () => {
  expect(read({ allowTools: ['@!destructiveHint', 'read_*'], tools: { a: { arguments: { n: 1 } } } }).ok).toBe(true);
  const line = readConfiguration({
    argv: ['--defaults.tools', '{"a":{"name":"b"}}', '--defaults.denyTools', 'x*,y', '--', 'node', 'a.js'],
    env: {},
    readFile: () => '',
  });
  const [server] = line.ok && 'config' in line ? line.config.servers : [];
  expect(server).toMatchObject({ tools: { a: { name: 'b' } }, denyTools: ['x*', 'y'] });
});
