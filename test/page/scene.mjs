// A running gateway with faults, for a person who looks at its status page: npm run build && node test/page/scene.mjs [--calm] [--sessions N] [--minutes N]
// Clients of three users call seven servers: one works, one fails, one is slow, one crashes, one writes noise, one does not start, one is unused.
// A stranger shows a wrong key, and another one a wrong host. The sessions are kept in a Redis that belongs to the scene.
// The program prints the URL and the key of the operator, and ends with Ctrl-C. --calm leaves the faults and Redis out; --sessions adds idle sessions.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { prepareBackend } from '../../bench/lib/backend.mjs';
import { startRedis } from '../../bench/lib/redis.mjs';
import { freePort } from '../../bench/lib/wait.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const server = (mode) => ({ command: process.execPath, args: [`${root}test/page/scene-server.mjs`, mode] });
const keyOf = (user) => `${user}-${'k'.repeat(40)}`;

/** The servers by name, with the fault of each. */
const faults = {
  files: 'healthy',
  mail: 'failing',
  search: 'slow',
  reports: 'crashing',
  chat: 'noisy',
  database: 'refused',
};

/** The clients: user, program, server, and the pause between two calls. */
const clients = [
  ['alice', 'Claude Desktop', '1.4.2', 'files', 400],
  ['alice', 'Claude Desktop', '1.4.2', 'search', 500],
  ['bob', 'Cursor', '0.50', 'files', 700],
  ['bob', 'Cursor', '0.50', 'mail', 900],
  ['bob', 'Cursor', '0.50', 'reports', 800],
  ['nightly', 'invoice-batch', '2.0', 'mail', 250],
  ['nightly', 'invoice-batch', '2.0', 'reports', 600],
  ['nightly', 'invoice-batch', '2.0', 'chat', 1_500],
];

/** The pause between two requests of the strangers. */
const strangePauseMs = 15_000;

/** Posts a message as a client that is refused. Resolves with the status. */
const postAsStranger = (port, path, headers) =>
  new Promise((resolve, reject) => {
    const sent = request({
      ...{ host: '127.0.0.1', port, path, method: 'POST' },
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    });
    sent.once('response', (response) => resolve(response.resume().statusCode)).once('error', reject);
    sent.end('{"jsonrpc":"2.0","id":1,"method":"ping"}');
  });

/**
 * Starts the gateway, its Redis and its clients.
 * @param options `sessions`: further sessions of a server that costs little; `args`: further options of the gateway
 */
export async function startScene({ isCalm = false, sessions = 0, args = [] } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-scene-'));
  const [port, adminPort] = [await freePort(), await freePort()];
  const [command, ...commandArgs] = prepareBackend().command;
  const names = Object.entries(faults).map(([name, mode]) => [name, server(isCalm ? 'healthy' : mode)]);
  const bulk = sessions > 0 ? { bulk: { command, args: commandArgs, share: 'session' } } : {};
  const mcpServers = { ...Object.fromEntries(names), archive: server('healthy'), ...bulk };
  const scopes = ['gangway:status', 'gangway:sessions', 'gangway:drain'];
  const keys = [...new Set(clients.map(([user]) => user)), 'operator'].map((name) => ({
    name,
    sha256: createHash('sha256').update(keyOf(name)).digest('hex'),
    ...(name === 'operator' && { scopes }),
  }));
  writeFileSync(join(folder, 'gangway.json'), JSON.stringify({ mcpServers }));
  writeFileSync(join(folder, 'keys.json'), JSON.stringify(keys), { mode: 0o600 });
  const options = ['--port', port, '--admin-port', adminPort, '--config', join(folder, 'gangway.json')];
  const limits = ['--max-sessions', sessions + 100, '--limits.user.sessions', sessions + 50];
  const redis = isCalm ? undefined : await startRedis();
  const store = redis === undefined ? [] : ['--redis', `redis://127.0.0.1:${redis.port}`];
  const all = [
    ...options,
    ...limits,
    ...store,
    '--api-keys-file',
    join(folder, 'keys.json'),
    '--log-level',
    'error',
    ...args,
  ];
  const gateway = spawn(process.execPath, [`${root}dist/main.js`, ...all.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  for await (const chunk of gateway.stdout.setEncoding('utf8')) {
    printed += chunk;
    if (/^Status page:\n.*\n/m.test(printed)) break;
  }
  gateway.stdout.resume();
  let isOver = false;

  const connect = async (user, name, version, at) => {
    const headers = { authorization: `Bearer ${keyOf(user)}` };
    const client = new Client({ name, version });
    const url = new URL(`http://127.0.0.1:${port}/${at}/mcp`);
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    return client;
  };
  /** Ends the session of a client, so that none is left behind. */
  const disconnect = async (client) => {
    await client.transport?.terminateSession().catch(() => undefined);
    await client.close().catch(() => undefined);
  };
  const keepCalling = async ([user, name, version, at, pauseMs]) => {
    let client;
    while (!isOver) {
      client ??= await connect(user, name, version, at).catch(() => undefined);
      const isUsable = await client?.callTool({ name: 'query', arguments: { text: 'invoices' } }).then(
        () => true,
        // A call that fails, such as in a crash, does not end the session.
        () =>
          client.ping().then(
            () => true,
            () => false,
          ),
      );
      if (isUsable === false) {
        await disconnect(client);
        client = undefined;
      }
      await delay(client === undefined ? 5_000 : pauseMs, undefined, { ref: false });
    }
  };
  for (const client of clients) void keepCalling(client);
  void keepCalling(['alice', 'Claude Desktop', '1.4.2', 'database', 5_000]);
  const keepAsking = async () => {
    while (!isOver) {
      await postAsStranger(port, '/mail/mcp', { authorization: `Bearer ${'x'.repeat(40)}` }).catch(() => undefined);
      await postAsStranger(port, '/files/mcp', { host: 'evil.example' }).catch(() => undefined);
      await delay(strangePauseMs, undefined, { ref: false });
    }
  };
  if (!isCalm) void keepAsking();
  const idle = [];
  while (idle.length < sessions)
    idle.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(10, sessions - idle.length) }, () => connect('nightly', 'bulk', '1.0', 'bulk')),
      )),
    );
  return {
    url: `http://127.0.0.1:${adminPort}/`,
    port,
    key: keyOf('operator'),
    keyOf,
    async stop() {
      isOver = true;
      const ended = new Promise((resolve) => gateway.once('exit', resolve));
      gateway.kill();
      await ended;
      await redis?.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: { calm: { type: 'boolean' }, sessions: { type: 'string' }, minutes: { type: 'string' } },
  });
  const scene = await startScene({ isCalm: values.calm, sessions: Number(values.sessions ?? 0) });
  process.stdout.write(`Status page: ${scene.url}\nKey of the operator: ${scene.key}\n`);
  const stop = () => void scene.stop().then(() => process.exit(0));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  if (values.minutes !== undefined) setTimeout(stop, Number(values.minutes) * 60_000);
}
