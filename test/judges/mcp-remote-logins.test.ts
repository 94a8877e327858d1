import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
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
import { waitFor } from '../support/wait-for.ts';

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
    // During a session, mcp-remote opens the page first, and then listens for the code. A user is not as fast as this test.
    const listening = [...text.matchAll(/callback server running/g)].length;
    for (; logins < Math.min(asked.length, listening); logins++)
      server.browse(new URL(asked[logins]?.[1] ?? '')).catch(() => undefined);
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport).catch((cause) => {
    throw new Error(`mcp-remote does not connect: ${text}`, { cause });
  });
  return { client, logins: () => logins, text: () => text };
}

/** Changes the token in the files of mcp-remote, as if it had been altered: the gateway refuses it, as after its expiry. */
async function spoilToken(folder: string): Promise<void> {
  const names = await readdir(folder, { recursive: true });
  const [name = ''] = names.filter((each) => each.endsWith('tokens.json'));
  const file = join(folder, name);
  const tokens = JSON.parse(await readFile(file, 'utf8')) as { access_token: string };
  const access_token = tokens.access_token.replace(/.{8}$/, 'refused-');
  await writeFile(file, JSON.stringify({ ...tokens, access_token }));
}

describe.each(providerProfiles.map((profile) => [profile.name, profile] as const))('%s', (_name, profile) => {
  /** A provider, a gateway, and clients with the same files. */
  async function setUp() {
    const { server, gateway } = await startProvider(profile);
    const folder = await mkdtemp(join(tmpdir(), 'gangway-mcp-remote-'));
    onTestFinished(async () => {
      await gateway.stop();
      await server.close();
      await rm(folder, { recursive: true });
    });
    const { redirect_uris: _uris, ...information } = clientInformation(profile);
    const start = (isRegistered = profile.registers !== true) =>
      connect(gateway.url, server, folder, isRegistered ? information : undefined);
    return { server, gateway, folder, start };
  }
  const call = async (
    { client, text }: Awaited<ReturnType<typeof connect>>,
    name: string,
    args = {},
  ): Promise<string> =>
    JSON.stringify(
      await client.callTool({ name, arguments: args }, undefined, { timeout: 20_000 }).catch((cause) => {
        throw new Error(`mcp-remote does not answer: ${text()}`, { cause });
      }),
    );

  test('mcp-remote logs in, lists and calls; later it connects again without its user', async () => {
    const { start } = await setUp();
    for (const logins of [1, 0]) {
      const remote = await start();
      expect((await remote.client.listTools()).tools.map(({ name }) => name)).toContain('echo');
      expect(await call(remote, 'test_simple_text')).toContain('simple text');
      await remote.client.close();
      expect(remote.logins()).toBe(logins);
    }
  });

  test('mcp-remote steps up where a tool needs more, and keeps what it had', async () => {
    const { server, gateway, start } = await setUp();
    // mcp-remote registers with the scopes of its first login, and oidc-provider grants such a client no others.
    const remote = await start(true);
    expect(await call(remote, 'echo', { text: 'one' })).toContain('one');
    expect(remote.logins()).toBe(2);
    const { use, read } = profile.requested({ endpoint: gateway.url, origin: new URL(server.url).origin });
    expect(server.asked.at(-1)?.split(' ')).toEqual(expect.arrayContaining([use, read]));
    expect(await call(remote, 'echo', { text: 'two' })).toContain('two');
    expect(await call(remote, 'test_simple_text')).toContain('simple text');
    await remote.client.close();
    expect(remote.logins()).toBe(2);
  });

  test('mcp-remote refreshes its token without its user, in a session', async () => {
    const { folder, start } = await setUp();
    const remote = await start();
    // By then its GET stream is open. Two requests that are refused at once would both use the refresh token.
    expect(await call(remote, 'test_simple_text')).toContain('simple text');
    await spoilToken(folder);
    expect(await call(remote, 'test_simple_text')).toContain('simple text');
    await remote.client.close();
    expect(remote.logins()).toBe(1);
  });

  test('mcp-remote whose consent is revoked asks its user to log in again', async () => {
    const { server, folder, start } = await setUp();
    const remote = await start();
    expect(await call(remote, 'test_simple_text')).toContain('simple text');
    await server.revoke();
    // A token that no endpoint is asked about is good until its expiry.
    if (!profile.endsRevokedTokens) await spoilToken(folder);
    const callUntilLogin = async () => {
      expect(await call(remote, 'test_simple_text')).toContain('simple text');
      return remote.logins() === 2;
    };
    await waitFor(callUntilLogin, { what: 'the second login' });
    await remote.client.close();
  });
});
