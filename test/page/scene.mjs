// A running gateway with faults, for a person who looks at its status page: npm run build && node test/page/scene.mjs [--calm] [--sessions N] [--minutes N]
// Clients of four users call eight servers: one works, one fails, one is slow, one crashes, one writes noise, one leaks memory, one does not start, one is unused.
// A client loses its stream again and again. A stranger shows a wrong key, and another one a wrong host. Two instances share a Redis that belongs to the scene.
// The program prints the URL and the key of the operator, and ends with Ctrl-C. --calm leaves the faults, Redis and the second instance out; --sessions adds idle sessions.
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
  cache: 'leaking',
  database: 'refused',
};

/** The clients: user, program, version, server, the pause between two calls, and the instance if it is not the first one. */
const clients = [
  ['alice', 'Claude Desktop', '1.4.2', 'files', 400],
  ['alice', 'Claude Desktop', '1.4.2', 'search', 500],
  ['bob', 'Cursor', '0.50', 'files', 700],
  ['bob', 'Cursor', '0.50', 'mail', 900],
  ['bob', 'Cursor', '0.50', 'reports', 800],
  ['nightly', 'invoice-batch', '2.0', 'mail', 250],
  ['nightly', 'invoice-batch', '2.0', 'reports', 600],
  ['nightly', 'invoice-batch', '2.0', 'chat', 1_500],
  ['nightly', 'invoice-batch', '2.0', 'cache', 400],
  ['carol', 'VS Code', '1.99', 'files', 900, 1],
];

/** The pause between two calls of the client that loses its stream. */
const lossPauseMs = 10_000;

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

/** Starts an instance, and waits until it listens. */
async function startGateway(options) {
  const [port, adminPort] = [await freePort(), await freePort()];
  const args = [`${root}dist/main.js`, '--port', port, '--admin-port', adminPort, ...options];
  const child = spawn(process.execPath, args.map(String), { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    printed += chunk;
    if (/^Status page: .*\n/m.test(printed)) break;
  }
  child.stdout.resume();
  return {
    port,
    adminPort,
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill();
      await ended;
    },
  };
}

/**
 * Starts the instances, their Redis and their clients.
 * @param options `sessions`: further sessions of a server that costs little; `args`: further options of the gateway
 */
export async function startScene({ isCalm = false, sessions = 0, args = [] } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-scene-'));
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
  const redis = isCalm ? undefined : await startRedis();
  const options = [
    ...['--config', join(folder, 'gangway.json'), '--api-keys-file', join(folder, 'keys.json'), '--log-level', 'error'],
    ...['--max-sessions', sessions + 100, '--limits.user.sessions', sessions + 50],
    ...(redis === undefined ? [] : ['--redis', `redis://127.0.0.1:${redis.port}`]),
    ...args,
  ];
  const gateways = [];
  for (let instance = 0; instance < (isCalm ? 1 : 2); instance += 1) gateways.push(await startGateway(options));
  const [{ port, adminPort }] = gateways;
  let isOver = false;

  const connect = async (user, name, version, at, instance = 0, fetchWith = fetch) => {
    const headers = { authorization: `Bearer ${keyOf(user)}` };
    const client = new Client({ name, version });
    const url = new URL(`http://127.0.0.1:${(gateways[instance] ?? gateways[0]).port}/${at}/mcp`);
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers }, fetch: fetchWith }));
    return client;
  };
  /** Ends the session of a client, so that none is left behind. */
  const disconnect = async (client) => {
    await client.transport?.terminateSession().catch(() => undefined);
    await client.close().catch(() => undefined);
  };
  const keepCalling = async ([user, name, version, at, pauseMs, instance]) => {
    let client;
    while (!isOver) {
      if (client === undefined) {
        client = await connect(user, name, version, at, instance).catch(() => undefined);
        await client?.listTools().catch(() => undefined); // the page names the tools that their server has listed
      }
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
  /** Cuts the stream of each call after the second event. The client of the SDK resumes it. */
  const keepLosing = async () => {
    let cut = new AbortController();
    const fetchUntilCut = (url, { signal, ...init } = {}) =>
      fetch(url, { ...init, signal: AbortSignal.any([cut.signal, ...(signal ? [signal] : [])]) });
    const client = await connect('alice', 'Field App', '3.1', 'files', 0, fetchUntilCut);
    while (!isOver) {
      let events = 0;
      const onprogress = () => {
        events += 1;
        if (events !== 2) return;
        cut.abort();
        cut = new AbortController();
      };
      await client.callTool({ name: 'export' }, { onprogress }).catch(() => undefined);
      await delay(lossPauseMs, undefined, { ref: false });
    }
  };
  if (!isCalm) for (const run of [keepAsking, keepLosing]) void run().catch(() => undefined);
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
      await Promise.all(gateways.map((gateway) => gateway.stop()));
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
