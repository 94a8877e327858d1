// node bench/console-cost.mjs [--sessions 500] [--rate 200] [--seconds 30] [--rounds 3]
// What the status page costs a gateway while nobody has it open, in processor time and memory. Two gateways run at the same time with the same
// sessions and calls: one with the console, one without. The limits are 1 % of a core and 3 MiB; above them the program fails.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { prepareBackend } from './lib/backend.mjs';
import { readCommand, requireBuild } from './lib/command.mjs';
import { McpSession } from './lib/mcp-session.mjs';
import { resultsFolder } from './lib/results.mjs';
import { freePort, within } from './lib/wait.mjs';
import { ourProgram } from './targets.mjs';

const maxCpuPercent = 1;
const maxMib = 3;
/** The history measures the memory of processes every 20 s. */
const leastSeconds = 25;
const openedAtOnce = 10;
const startLimitMs = 30_000;

const { values } = readCommand(import.meta, {
  sessions: { type: 'number' },
  rate: { type: 'number' },
  seconds: { type: 'number', least: leastSeconds },
  rounds: { type: 'number' },
});
const { sessions = 500, rate = 200, seconds = 30, rounds = 3 } = values;
requireBuild(ourProgram);
const { name: backend, command } = prepareBackend();
const folder = path.join(resultsFolder, 'console-cost');
const preload = path.join(path.dirname(fileURLToPath(import.meta.url)), 'console/measured-gateway.mjs');

// NODE_OPTIONS and certificates of the machine would change both gateways.
const { NODE_EXTRA_CA_CERTS: _certificates, NODE_OPTIONS: _options, ...environment } = process.env;

/** Copies the build, with or without the console. Without it, the gateway serves metrics at the same port. */
function prepareProgram(hasConsole) {
  const target = path.join(folder, hasConsole ? 'with' : 'without');
  cpSync(path.dirname(ourProgram), target, { recursive: true });
  if (!hasConsole) {
    const [chunk] = readdirSync(target).filter((file) => /^connect-console-.*\.js$/.test(file));
    if (chunk === undefined) throw new Error('The build has no chunk of the console');
    writeFileSync(path.join(target, chunk), 'export const connectConsole = () => undefined;\n');
  }
  return path.join(target, 'main.js');
}

/** Starts a gateway with its sessions. */
async function startGateway(hasConsole) {
  const [port, adminPort] = [await freePort(), await freePort()];
  const options = ['--port', port, '--admin-port', adminPort, '--max-sessions', sessions + 10, '--log-level', 'warn'];
  const args = ['--expose-gc', '--import', preload, prepareProgram(hasConsole), ...options, '--', ...command];
  const log = openSync(path.join(folder, hasConsole ? 'with.log' : 'without.log'), 'w');
  const child = spawn(process.execPath, args.map(String), { stdio: ['ignore', log, log, 'ipc'], env: environment });
  const url = `http://127.0.0.1:${adminPort}/healthz`;
  const isUp = () =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  if (!(await within(startLimitMs, isUp))) {
    child.kill('SIGKILL');
    throw new Error(`A gateway does not start; see ${folder}`);
  }
  return {
    /** Its sessions. */
    open: [],
    port,
    /** Asks for its `memory`, or its processor time `cpuMs`. */
    measure: (what) =>
      new Promise((resolve, reject) => {
        const onExit = () => reject(new Error(`A gateway has ended; see ${folder}`));
        child.once('exit', onExit);
        child.once('message', (measured) => {
          child.off('exit', onExit);
          resolve(measured);
        });
        child.send(what, (error) => error && reject(error));
      }),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Opens the sessions of both gateways, in turn. */
async function openSessions(gateways) {
  for (let opened = 0; opened < sessions; opened += openedAtOnce) {
    const count = Math.min(openedAtOnce, sessions - opened);
    for (const { port, open } of gateways) {
      const created = Array.from({ length: count }, () => new McpSession([port]));
      await Promise.all(created.map((session) => session.open()));
      open.push(...created);
    }
  }
}

const echo = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'x' } },
});

/** Calls a tool in a session. A call that fails ends the program after the gateways have stopped. */
const call = (session) =>
  session.call(echo).catch((error) => {
    failure ??= error;
  });

/** Calls a tool at both gateways `callsPerSecond` times a second, at one session after the other, for `seconds`. */
async function passTime(gateways, callsPerSecond) {
  const startedAt = performance.now();
  let calls = 0;
  /** A session has one call at a time. */
  const busy = new Map();
  for (;;) {
    const elapsed = performance.now() - startedAt;
    if (elapsed >= seconds * 1_000) break;
    for (const due = (elapsed / 1_000) * callsPerSecond; calls < due; calls += 1)
      for (const gateway of gateways) {
        const session = gateway.open[calls % gateway.open.length];
        if (busy.has(session)) continue;
        busy.set(
          session,
          call(session).finally(() => busy.delete(session)),
        );
      }
    await sleep(5);
  }
  await Promise.all(busy.values());
  if (failure !== undefined)
    throw new Error('A call failed, so the gateways did not do the same work', { cause: failure });
}

/** The processor time of both gateways during some time, in percent of a core. */
async function cpuPercents(gateways, callsPerSecond) {
  const before = await Promise.all(gateways.map((gateway) => gateway.measure('cpuMs')));
  const startedAt = performance.now();
  await passTime(gateways, callsPerSecond);
  const ms = performance.now() - startedAt;
  const after = await Promise.all(gateways.map((gateway) => gateway.measure('cpuMs')));
  return after.map((cpuMs, index) => ((cpuMs - before[index]) / ms) * 100);
}

/** The median; of an even count, the mean of the two in the middle. */
function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

const mib = (bytes) => bytes / 2 ** 20;
const print = (text) => process.stdout.write(`${text}\n`);

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const gateways = [];
const differences = { idle: [], busy: [], memory: [], resident: [] };
/** The error of the first call that failed. */
let failure;
try {
  for (const hasConsole of [true, false]) gateways.push(await startGateway(hasConsole));
  await openSessions(gateways);
  print(
    `${sessions} sessions at each gateway, server in ${backend}; ${rounds} rounds of ${seconds} s idle and ${seconds} s with ${rate} calls/s`,
  );
  for (let round = 1; round <= rounds; round += 1) {
    for (const [kind, callsPerSecond] of [
      ['idle', 0],
      ['busy', rate],
    ]) {
      const percents = await cpuPercents(gateways, callsPerSecond);
      const [withConsole, without] = percents;
      differences[kind].push(withConsole - without);
      print(`round ${round}, ${kind}: ${percents.map((percent) => percent.toFixed(2)).join(' % with, ')} % without`);
    }
    const [withConsole, without] = await Promise.all(gateways.map((gateway) => gateway.measure('memory')));
    differences.memory.push(mib(withConsole.usedBytes - without.usedBytes));
    differences.resident.push(mib(withConsole.residentBytes - without.residentBytes));
  }
} finally {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
}
const [idle, busy, memory, resident] = ['idle', 'busy', 'memory', 'resident'].map((kind) => median(differences[kind]));
print(
  `The page costs ${idle.toFixed(2)} % of a core when idle, and ${busy.toFixed(2)} % at ${rate} calls/s (limit ${maxCpuPercent} %).`,
);
print(`The page costs ${memory.toFixed(2)} MiB in use (limit ${maxMib} MiB); resident ${resident.toFixed(1)} MiB.`);
if (Math.max(idle, busy) > maxCpuPercent || memory > maxMib) {
  print('ABOVE THE LIMIT');
  process.exitCode = 1;
}
