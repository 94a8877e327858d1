import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { changingFile } from '../support/changing-file.ts';
import { everythingFixture, root } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { isAtLeast } from '../support/log-levels.ts';
import { callModern, postModern } from '../support/modern-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { startHostile } from './hostile-server.ts';

const [file = '', ...words] = process.env['GATEWAY_PROGRAM']?.split(' ') ?? [process.execPath, `${root}dist/main.js`];

/** Servers whose one answer was the end of a gateway, and one that is honest. */
const [command, ...args] = everythingFixture;
const honest = { command, args };
const answersAll = (answer: string) => ({
  command: process.execPath,
  args: [
    '-e',
    `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id } = JSON.parse(line);
      if (id !== undefined) console.log(${JSON.stringify(answer)}.replace('ID', JSON.stringify(id)));
    });`,
  ],
});
const nullError = { ...answersAll('{"jsonrpc":"2.0","id":ID,"error":null}'), timeouts: { start: '20s' } };

const odd = '"inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}';
const badNames = [`{"name":{"toString":1},${odd}}`, `{"name":${'['.repeat(900)}${']'.repeat(900)},${odd}}`];

test('[S-01] [S-02] [C-09] one answer of a hostile server ends no more than what it answers', async () => {
  const { origin } = await startHostile(async (request, response: ServerResponse) => {
    const { id, method } = JSON.parse(Buffer.concat(await request.toArray()).toString() || '{}');
    const result =
      method === 'server/discover'
        ? '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}'
        : `"tools":[${badNames.join()}]`;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"resultType":"complete",${result}}}`);
  });
  const hostile = { url: `${origin}/mcp`, transport: 'http', era: 'modern' };
  const probed = { ...nullError, probes: { every: '50ms' } };
  const config = await changingFile('gangway.json', JSON.stringify({ mcpServers: { honest, hostile, probed } }));
  const gateway = await startLocalGateway({ args: ['--config', config.path] });
  const session = await initialize(`${gateway.baseUrl}/honest/mcp`);
  const list = await postModern(`${gateway.baseUrl}/hostile/mcp`, 'tools/list');
  expect([list.status, list.json.result.tools]).toEqual([200, []]);
  await callModern(`${gateway.baseUrl}/hostile/mcp`, 'x'); // has the gateway list the tools by itself
  await waitFor(() => gateway.logs().some(({ msg }) => msg === 'server is down according to its probes'), {
    deadlineMs: 20_000,
    what: 'probes of the hostile server',
  });
  const { status } = await session.request('tools/list');
  expect(status).toBe(200);
  expect(gateway.logs().filter((line) => isAtLeast(line, 'error'))).toEqual([]);
});

test('[S-02] check says what is wrong with servers whose answers are of no use', async () => {
  const servers = {
    nullError,
    noObject: answersAll('{"jsonrpc":"2.0","id":ID,"result":[]}'),
    badError: answersAll('{"jsonrpc":"2.0","id":ID,"error":{"message":{"toString":1}}}'),
  };
  const config = await changingFile('gangway.json', JSON.stringify({ mcpServers: servers }));
  const child = spawn(file, [...words, 'check', '--config', config.path, '--era', 'legacy'], {
    env: { ...process.env, REDIS_URL: '' },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  expect(code).toBe(1);
  const problem = (what: string) => `The MCP server's answer is not valid JSON-RPC: ${what}.`;
  expect(stdout).toContain(`The server answered initialize with the error: ${problem('the error is null')}`);
  expect(stdout).toContain(`The server answered initialize with the error: ${problem('the result is not an object')}`);
  expect(stdout).toContain('with the error: The MCP server gave no message with this error.');
  expect(stderr).not.toMatch(/TypeError|internal error/);
});
