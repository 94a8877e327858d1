// What a client at a wrong path is told: only what anybody can know.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeKey } from '../../src/app/commands/key-command.ts';
import { everythingFixture } from '../support/gateway.ts';
import { startLocalGateway } from '../support/local-gateway.ts';

const env = { GANGWAY_API_KEYS: makeKey('ada').variable };
const [command, ...args] = everythingFixture;
const two = { mcpServers: { alpha: { command, args }, beta: { command, args } } };

function fileOf(content: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-paths-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'gangway.json');
  writeFileSync(file, JSON.stringify(content));
  return file;
}

async function toldAt(method: 'GET' | 'POST', options: Parameters<typeof startLocalGateway>[0]) {
  const gateway = await startLocalGateway(options);
  const response = await fetch(gateway.baseUrl, { method });
  expect(response.status).toBe(404);
  const { error } = (await response.json()) as { error: { message: string; data: { endpoints?: string[] } } };
  return { message: error.message, endpoints: error.data.endpoints };
}

test.each(['GET', 'POST'] as const)('%s / names the endpoint of the only server, also with keys', async (method) => {
  for (const each of [{}, env])
    expect(await toldAt(method, { command: everythingFixture, env: each })).toEqual({
      message: 'Not found: no MCP endpoint has this path. The server may have been removed. The endpoint is /mcp.',
      endpoints: ['/mcp'],
    });
});

test('the names of several servers are told as /readyz tells them: without authentication', async () => {
  const config = ['--config', fileOf(two)];
  expect((await toldAt('GET', { args: config })).message).toContain('The endpoints are /alpha/mcp, /beta/mcp.');
  const withKeys = await toldAt('GET', { args: config, env });
  expect(withKeys.message).not.toMatch(/alpha|beta/);
  expect(withKeys.endpoints).toBeUndefined();
});

test('a path that the operator has chosen is not told', async () => {
  const { message, endpoints } = await toldAt('GET', { command: everythingFixture, args: ['--path', '/canary/mcp'] });
  expect(message).not.toContain('canary');
  expect(endpoints).toBeUndefined();
});
