// node bench/redis-cost.mjs
//
// What instances that share a Redis ask of it: for sessions, calls and events, the commands that are sent, the commands
// that run (those inside of scripts too), and the bytes in and out. Starts a redis-server (it must be on the PATH) and two
// gateways on free ports, and prints the tables of docs/scaling.md. BENCH_OURS=<file> measures another build than
// dist/main.js. Each case runs twice: once between two INFO, once under MONITOR, which would count in the bytes.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readCommand, requireBuild, requireRedis } from './lib/command.mjs';
import { startRedis } from './lib/redis.mjs';
import { freePort } from './lib/wait.mjs';
import { ourProgram } from './targets.mjs';

const self = fileURLToPath(import.meta.url);
const run = promisify(execFile);
const print = (text) => process.stdout.write(`${text}\n`);
const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
let lastId = 0;

if (process.argv[2] === '--server') serve();
else {
  readCommand(import.meta);
  requireBuild(ourProgram);
  requireRedis('redis-server', 'redis-cli');
  const server = await startRedis();
  await measureAll(server.port).finally(server.stop);
}

/** The MCP server: `echo` answers with its text; `emit` reports progress in bursts, then answers. */
function serve() {
  const write = (messages) => process.stdout.write(messages.map((m) => `${JSON.stringify(m)}\n`).join(''));
  const emit = async ({ count, burst, gapMs, pad }, progressToken) => {
    for (let n = 1; n <= count; n += burst) {
      const steps = Array.from({ length: Math.min(burst, count - n + 1) }, (_, index) => n + index);
      const params = (progress) => ({ progressToken, progress, message: 'x'.repeat(pad) });
      write(steps.map((step) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: params(step) })));
      await delay(gapMs);
    }
  };
  createInterface({ input: process.stdin })
    .on('line', async (line) => {
      const { id, method, params } = JSON.parse(line);
      if (id === undefined) return;
      const { name, arguments: given, _meta, protocolVersion } = params ?? {};
      if (name === 'emit') await emit(given, _meta.progressToken);
      const initialized = { protocolVersion, capabilities: {}, serverInfo: { name: 'cost', version: '1' } };
      const content = [{ type: 'text', text: given?.text ?? '' }];
      write([{ jsonrpc: '2.0', id, result: method === 'initialize' ? initialized : { content } }]);
    })
    .on('close', () => process.exit(0));
}

async function measureAll(port) {
  const started = [];
  process.on('exit', () => {
    for (const child of started) child.kill('SIGKILL');
  });
  const redis = createRedis(port);
  const gateways = [];
  for (const _ of [1, 2]) gateways.push(await startGateway(port, started));
  const [owner, other] = gateways;
  await delay(1_000); // both have joined

  const version = /redis_version:(\S+)/.exec(await redis.info('server'))[1];
  print(
    `Redis ${version}, two gateways, defaults. Per unit; what the idle gateways ask in the same time is taken off.\n`,
  );
  const idle = await idleCost(redis);
  const perGateway = (value) => (value / 2).toFixed(2);
  print(
    `Idle, per gateway and second: ${perGateway(idle.sent)} commands sent, ${perGateway(idle.ran)} run,` +
      ` ${(idle.in / 2).toFixed(0)} bytes in, ${(idle.out / 2).toFixed(0)} out.\n`,
  );
  print('| What | Unit | Commands sent | Run | Bytes in | Bytes out |');
  print('| --- | --- | --- | --- | --- | --- |');
  for (const scenario of scenarios(owner, other)) print(await row({ redis, idle, owner }, scenario));

  print('\nMemory, by MEMORY USAGE:');
  for (const line of await memory(redis, owner)) print(`- ${line}`);
  // The gateways first: they tell Redis what becomes of their sessions.
  for (const child of started.reverse()) {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
}

/** What is measured: `units` of something that `act` does, in a session of the owner that was opened before. */
function scenarios(owner, other) {
  const echo = (url, times, size) => async (session) => {
    for (let n = 0; n < times; n++) await call(url, session, 'echo', { text: 'x'.repeat(size) });
  };
  const emit = (url, given) => async (session) => {
    await call(url, session, 'emit', { count: 1_000, burst: 1, gapMs: 3, pad: 100, ...given });
  };
  return [
    {
      what: 'Opening a session',
      unit: 'session',
      units: 100,
      hasNone: true,
      async act() {
        for (let n = 0; n < 100; n++) await open(owner);
      },
    },
    { what: 'JSON answer, 100 B, at the owner', unit: 'call', units: 500, act: echo(owner, 500, 100) },
    { what: 'JSON answer, 100 B, through the other gateway', unit: 'call', units: 500, act: echo(other, 500, 100) },
    { what: 'JSON answer, 10 KiB, through the other gateway', unit: 'call', units: 500, act: echo(other, 500, 10_240) },
    { what: 'Stream of one event, at the owner', unit: 'call', units: 200, act: short(owner, 200) },
    { what: 'Stream of one event, through the other gateway', unit: 'call', units: 200, act: short(other, 200) },
    { what: 'Progress, one at a time, at the owner', unit: 'event', units: 1_000, act: emit(owner, {}) },
    { what: 'Progress, 10 at once, at the owner', unit: 'event', units: 1_000, act: emit(owner, { burst: 10 }) },
    { what: 'Progress, one at a time, through the other gateway', unit: 'event', units: 1_000, act: emit(other, {}) },
    {
      what: 'Progress, 10 at once, through the other gateway',
      unit: 'event',
      units: 1_000,
      act: emit(other, { burst: 10 }),
    },
    {
      what: 'Progress of 4 KiB, one at a time, at the owner',
      unit: 'event',
      units: 1_000,
      act: emit(owner, { pad: 4_096 }),
    },
    {
      what: 'Progress of 4 KiB, one at a time, through the other gateway',
      unit: 'event',
      units: 1_000,
      act: emit(other, { pad: 4_096 }),
    },
  ];

  function short(url, times) {
    const given = { count: 1, burst: 1, gapMs: 3, pad: 100 };
    return async (session) => {
      for (let n = 0; n < times; n++) await call(url, session, 'emit', given);
    };
  }
}

async function row({ redis, idle, owner }, { what, unit, units, hasNone = false, act }) {
  const prepare = async () => (hasNone ? undefined : open(owner));
  const between = await prepare();
  const cost = await counted(redis, () => act(between));
  const watched = await prepare();
  const { sent, ms } = await monitored(redis, () => act(watched));
  const seconds = cost.ms / 1_000;
  const per = (value, idleValue, of = seconds) => (value - idleValue * of) / units;
  const digits = (value) => (Math.abs(value) < 0.05 ? '0' : value.toFixed(1));
  const bytes = (value) => (value < 15 ? '0' : value.toFixed(0)); // less is what idle gateways do at another moment
  return `| ${what} | ${unit} | ${digits(per(sent, idle.sent, ms / 1_000))} | ${digits(per(cost.ran, idle.ran))} | ${bytes(
    per(cost.in, idle.in),
  )} | ${bytes(per(cost.out, idle.out))} |`;
}

async function idleCost(redis) {
  const forMs = 10_000;
  const cost = await counted(redis, () => delay(forMs));
  const { sent, ms } = await monitored(redis, () => delay(forMs));
  const seconds = cost.ms / 1_000;
  return { sent: sent / (ms / 1_000), ran: cost.ran / seconds, in: cost.in / seconds, out: cost.out / seconds };
}

/** Commands run and bytes between two INFO. */
async function counted(redis, act) {
  const before = await redis.counts();
  const startedAt = performance.now();
  await act();
  const ms = performance.now() - startedAt;
  const after = await redis.counts();
  const nothing = { ran: after.ownRan, in: after.ownIn, out: after.ownOut };
  return {
    ms,
    ran: after.ran - before.ran - nothing.ran,
    in: after.in - before.in - nothing.in,
    out: after.out - before.out - nothing.out,
  };
}

/** Commands that came from a connection, and not from inside of a script. */
async function monitored(redis, act) {
  const { stop } = await redis.monitor();
  const startedAt = performance.now();
  await act();
  const ms = performance.now() - startedAt;
  return { sent: await stop(), ms };
}

async function memory(redis, owner) {
  const keysNow = async () => (await redis.cli('KEYS', 'gangway:session:*')).split('\n');
  const sizeOf = async (key) => Number(await redis.cli('MEMORY', 'USAGE', key, 'SAMPLES', '0'));
  const known = new Set(await keysNow());
  const session = await open(owner);
  const record = (await keysNow()).find((key) => !known.has(key));
  const fresh = await sizeOf(record);
  await call(owner, session, 'emit', { count: 500, burst: 10, gapMs: 1, pad: 100 });
  const log = record.replace(/record$/, 'log');
  const perEvent = (await sizeOf(log)) / Number(await redis.cli('HGET', record, 'events'));
  return [
    `the record of a new session: ${fresh} bytes`,
    `each of 500 events of 210 bytes, written 10 at once: ${perEvent.toFixed(0)} bytes`,
  ];
}

async function startGateway(redisPort, started) {
  const port = await freePort();
  const options = ['--port', String(port), '--admin-port', '0', '--log-level', 'error'];
  const redis = ['--redis', `redis://127.0.0.1:${redisPort}`];
  const child = spawn(process.execPath, [ourProgram, ...options, ...redis, '--', process.execPath, self, '--server'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  started.push(child);
  await new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk) => String(chunk).includes('Ready') && resolve());
    child.once('exit', () => reject(new Error('a gateway did not start')));
  });
  return `http://127.0.0.1:${port}/mcp`;
}

async function open(url) {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'redis-cost', version: '1' },
  };
  const response = await post(url, {}, { method: 'initialize', params });
  const session = response.headers.get('mcp-session-id');
  await response.text();
  return session;
}

async function call(url, session, name, given) {
  const params = { name, arguments: given, _meta: { progressToken: ++lastId } };
  const response = await post(url, { 'mcp-session-id': session }, { method: 'tools/call', params });
  const text = await response.text();
  if (!text.includes('"result"')) throw new Error(`no result but ${response.status} ${text.slice(0, 500)}`);
}

function post(url, more, message) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: ++lastId, ...message });
  return fetch(url, { method: 'POST', headers: { ...headers, ...more }, body });
}

function createRedis(port) {
  const cli = async (...args) => (await run('redis-cli', ['-p', String(port), '--raw', ...args])).stdout.trimEnd();
  const info = (section) => cli('INFO', section);
  const read = async () => {
    const stats = await info('stats');
    const commands = await info('commandstats');
    const number = (name) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(stats)[1]);
    const ran = [...commands.matchAll(/^cmdstat_(?!info|config|monitor)\S+?:calls=(\d+)/gm)];
    return {
      ran: ran.reduce((sum, [, calls]) => sum + Number(calls), 0),
      in: number('total_net_input_bytes'),
      out: number('total_net_output_bytes'),
    };
  };
  return {
    cli,
    info,
    /** The counts, and what asking for them twice adds. */
    async counts() {
      const first = await read();
      const second = await read();
      return { ...second, ownRan: 0, ownIn: second.in - first.in, ownOut: second.out - first.out };
    },
    async monitor() {
      const child = spawn('redis-cli', ['-p', String(port), 'MONITOR'], { stdio: ['ignore', 'pipe', 'inherit'] });
      const lines = createInterface({ input: child.stdout });
      await once(lines, 'line');
      let sent = 0;
      const isOver = new Promise((resolve) => {
        lines.on('line', (line) => {
          if (line.includes('the-end')) resolve();
          else if (/^\S+ \[\d+ (?!lua)/.test(line)) sent += 1;
        });
      });
      return {
        async stop() {
          await cli('ECHO', 'the-end');
          await isOver; // what Redis had to say until then may take a while to arrive
          child.kill();
          return sent;
        },
      };
    },
  };
}
