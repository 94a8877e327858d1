import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { AuthorizationServer } from '../support/authorization-server.ts';
import { providerProfiles } from '../support/provider-profiles.ts';
import { findFreePort } from '../support/redis-process.ts';
import { clientInformation, startProvider } from '../support/started-provider.ts';

const clients = fileURLToPath(new URL('clients', import.meta.url));
const program = join(clients, 'node_modules/mcp-remote/dist/proxy.js');
beforeAll(async () => {
  if (!existsSync(program)) await promisify(execFile)('npm', ['ci', '--ignore-scripts'], { cwd: clients });
});

/** Starts mcp-remote, and logs in whenever it asks its user to. */
async function connect(url: string, server: AuthorizationServer, folder: string, information: object | undefined) {
  const args = [program, url, `${await findFreePort()}`, '--transport', 'http-only'];
  if (information !== undefined) args.push('--static-oauth-client-info', JSON.stringify(information));
  const transport = new StdioClientTransport({
    command: process.execPath,
    args,
    env: { PATH: '/nowhere', MCP_REMOTE_CONFIG_DIR: folder },
    stderr: 'pipe',
  });
  let text = '';
  let logins = 0;
  transport.stderr?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    const asked = [...text.matchAll(/visiting:\s+(http\S+)\s/g)];
    for (; logins < asked.length; logins++) server.browse(new URL(asked[logins]?.[1] ?? '')).catch(() => undefined);
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport).catch((cause) => {
    throw new Error(`mcp-remote does not connect: ${text}`, { cause });
  });
  return { client, logins: () => logins };
}

describe.each(providerProfiles.map((profile) => [profile.name, profile] as const))('%s', (_name, profile) => {
  test('mcp-remote logs in, lists and calls; later it connects again without its user', async () => {
    const { server, gateway } = await startProvider(profile);
    const folder = await mkdtemp(join(tmpdir(), 'gangway-mcp-remote-'));
    onTestFinished(async () => {
      await gateway.stop();
      await server.close();
      await rm(folder, { recursive: true });
    });
    const { redirect_uris: _uris, ...information } = clientInformation(profile);
    const start = () => connect(gateway.url, server, folder, profile.registers === true ? undefined : information);
    const use = async ({ client }: Awaited<ReturnType<typeof start>>) => {
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo');
      const result = await client.callTool({ name: 'test_simple_text', arguments: {} });
      expect(JSON.stringify(result)).toContain('simple text');
      await client.close();
    };
    const first = await start();
    await use(first);
    expect(first.logins()).toBe(1);
    const second = await start();
    await use(second);
    expect(second.logins()).toBe(0);
  });
});
