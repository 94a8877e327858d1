import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize, open, post } from '../support/http-client.ts';
import { postModern } from '../support/modern-client.ts';
import { waitForDescendants } from '../support/processes.ts';

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gangway-commands-')));
const words = [`${root}test/fixtures/children/tells-its-start.mjs`, 'a b', '$HOME', '; id', '`id`', '*', ''];
const canary = 'S3CRET-canary';
/** What would leave a file behind if anybody ran it. */
const command = `touch ${folder}/owned`;
const texts = [
  command,
  `; ${command} #`,
  `$(${command})`,
  `\`${command}\``,
  `| ${command}`,
  `' ; ${command} ; '`,
  `\n${command}\n`,
];
let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({
    command: [process.execPath, ...words],
    cwd: folder,
    // What a gateway may have in its environment, and no server has any need of.
    env: {
      REDIS_URL: '',
      NODE_OPTIONS: '--no-warnings',
      AWS_SECRET_ACCESS_KEY: canary,
      GANGWAY_SECRET: canary,
      npm_config_x: canary,
    },
    isStoppedWithTest: false,
  });
});
afterAll(async () => {
  await gateway?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const initializing = (more: object) => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' }, ...more },
});

/** What the server of a new session was started with. */
async function startOf(session: Awaited<ReturnType<typeof initialize>>) {
  const { result } = (await session.request('test/start')).messages.find(({ id }) => id === 1);
  return result as { argv: string[]; env: Record<string, string>; execArgv: string[]; cwd: string };
}

describe('CVE-2025-6514: a client that brings a command', () => {
  it.each(texts)(
    '[A01] [S12] %j, wherever it puts it: nobody runs it, and the server is the configured one',
    async (text) => {
      const given = {
        command: text,
        args: [text],
        env: { PATH: text, NODE_OPTIONS: text, OWNED: text },
        cwd: '/',
        shell: true,
      };
      const header = { 'X-Command': encodeURIComponent(text), 'X-Mcp-Server': 'sh', 'X-Env-Owned': 'yes' };
      const query = `?${new URLSearchParams({ command: text, args: text, url: text, transportType: 'stdio', env: '{"OWNED":"1"}' })}`;
      const attempts = [
        post(gateway.url, initializing({ ...given, _meta: given, serverInfo: given }), header),
        post(gateway.url + query, initializing({ clientInfo: { name: text, version: text, title: text } }), header),
        post(gateway.url, initializing({ capabilities: { experimental: { [text]: given }, roots: given } })),
        post(`${gateway.baseUrl}/${encodeURIComponent(text)}/mcp`, initializing(given)),
        post(gateway.url, { jsonrpc: '2.0', id: text, method: text, params: given }),
        postModern(
          gateway.url,
          'tools/call',
          { name: 'x', arguments: given },
          { id: text, meta: { env: given, command: text } },
        ),
        open(`${gateway.baseUrl}/sse${query}`, { method: 'GET', headers: header }).then((exchange) => exchange.drop()),
      ];
      await Promise.all(attempts);
      const session = await initialize(gateway.url + query, { capabilities: given, headers: header });
      await session.request(text, given, { id: text });
      expect(await startOf(session)).toEqual({
        argv: [realpathSync(process.execPath), ...words],
        env: expect.not.objectContaining({ OWNED: expect.anything() }),
        execArgv: [],
        cwd: folder,
      });
      await session.delete();
      expect(readdirSync(folder)).toEqual([]);
    },
  );
});

describe('what a server is started with', () => {
  it('[S13] is an environment from an allow-list, without what is of the gateway alone', async () => {
    const session = await initialize(gateway.url);
    const { env } = await startOf(session);
    const allowed = /^(HOME|LANG|LANGUAGE|LC_\w+|LOGNAME|PATH|SHELL|TERM|TMPDIR|TZ|USER)$/;
    expect(Object.keys(env).filter((name) => !allowed.test(name))).toEqual([]);
    expect(JSON.stringify(env)).not.toContain(canary);
    await session.delete();
  });

  it.runIf(existsSync('/proc/self/cmdline'))(
    '[S12] [S01] holds no id of a session, nor anything else of a client',
    async () => {
      const sessions = await Promise.all(
        ['one', 'two'].map(() => initialize(gateway.url, { headers: { Authorization: canary } })),
      );
      const processes = await waitForDescendants(gateway.pid, (count) => count >= sessions.length);
      for (const { pid } of processes) {
        const started = ['cmdline', 'environ'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'utf8')).join('\0');
        for (const { id } of sessions) expect(started).not.toContain(id);
        expect(started).not.toContain(canary);
        expect(started).not.toContain('raw-test-client');
      }
      for (const session of sessions) await session.delete();
    },
  );
});
