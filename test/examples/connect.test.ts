import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { expect, it, onTestFinished } from 'vitest';
import { makeKey } from '../../src/app/commands/key-command.ts';
import { everythingFixture, root } from '../support/gateway.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { walk } from './walk.ts';

it('docs/recipes/connect.md connects a client that only starts programs, by the configuration that it shows', async () => {
  const key = makeKey('ada');
  const gateway = await startLocalGateway({ command: everythingFixture, env: { GANGWAY_API_KEYS: key.variable } });
  const recipe = await walk({
    page: 'docs/recipes/connect.md',
    // The tool of our own server has another argument.
    instead: { 'https://mcp.example.com': gateway.baseUrl, KEY: key.key, '"message"': '"text"' },
  });
  const { remote } = JSON.parse(readFileSync(`${recipe.folder}/client.json`, 'utf8')).mcpServers;
  expect(remote.command).toBe('mcp-gangway');
  const client = new Client({ name: 'desktop', version: '1.0.0' }, { capabilities: {} });
  onTestFinished(() => client.close());
  const env = { PATH: process.env['PATH'] ?? '', ...remote.env };
  const args = [`${root}dist/main.js`, ...remote.args];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env, stderr: 'ignore' }));
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo');
});
