import { expect, it } from 'vitest';
import { readConfiguration } from '../../../src/config/config.ts';

const mcpServers = { files: { command: 'x' }, mail: { command: 'x' } };

it.each([
  ['flies', 'names a server that does not exist; did you mean files?'],
  ['token-hunter2-xyz', 'names a server that does not exist; the servers are files, mail'],
])('[P12] a view of the unknown server %s: %s', (name, message) => {
  const read = readConfiguration({
    argv: ['--config', 'g.json'],
    env: {},
    readFile: () => JSON.stringify({ mcpServers, views: { all: ['mail', name] } }),
  });
  expect(read).toMatchObject({ ok: false, faults: [{ message }] });
});
