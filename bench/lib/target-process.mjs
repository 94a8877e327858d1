// Starts a target and ends it, by its pids, with everything it started.
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpSession } from './mcp-session.mjs';
import { descendants, isAlive } from './proc.mjs';
import { freePort, within } from './wait.mjs';

const startLimitMs = 20_000;
const stopLimitMs = 10_000;

// What some machines set, and what would slow each start of Node.js there (45 ms for a file of certificates).
const { NODE_EXTRA_CA_CERTS: _certificates, NODE_OPTIONS: _options, ...environment } = process.env;

/**
 * Starts a target: its one process, or its instances. Resolves when it has answered `initialize`, with `startMs`, the milliseconds until then.
 * @param logFile gets what it writes to stderr
 * @param places what stands behind it; see `startBehind`
 * @param token what its clients show, if they have to
 * @param nodeOptions arguments of Node.js before those of the target
 * @param environmentOf variables of each instance, beside those of this process
 */
export async function startTarget(
  name,
  target,
  { places, token, logFile, nodeOptions = [], environmentOf = () => ({}) },
) {
  const { argv, usesToken, instances = 1 } = target;
  const listeners = [];
  while (listeners.length < instances) {
    listeners.push({ port: `${await freePort()}`, adminPort: `${await freePort()}` });
  }
  const startedAt = performance.now();
  const group = listeners[0].port;
  const processes = listeners.map((listener) =>
    launch([...nodeOptions, ...argv({ ...listener, group }, places)], logFile, environmentOf()),
  );
  const ports = listeners.map(({ port }) => Number(port));
  const started = { name, ports, pids: processes.map(({ pid }) => pid), processes, startMs: 0 };
  // Of several instances, each has to know the others: one session after the other is opened by way of two of them.
  for (let answered = 0; answered < instances; ) {
    if (await answers(ports, usesToken ? token : undefined)) {
      answered += 1;
      continue;
    }
    answered = 0;
    if (processes.some(({ exit }) => exit !== undefined)) {
      await stopTarget(started);
      throw new Error(`${name} ended at its start; see ${logFile}`);
    }
    if (performance.now() - startedAt > startLimitMs) {
      await stopTarget(started);
      throw new Error(`${name} did not answer within ${startLimitMs} ms; see ${logFile}`);
    }
    await sleep(2);
  }
  started.startMs = performance.now() - startedAt;
  return started;
}

function launch(args, logFile, variables) {
  const log = openSync(logFile, 'a');
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'ignore', log],
    env: { ...environment, ...variables },
  });
  closeSync(log);
  const launched = { pid: child.pid, exit: undefined };
  child.once('exit', (code, signal) => {
    launched.exit = { code, signal };
  });
  return launched;
}

/** Ends a target: SIGTERM, then SIGKILL. Says how its processes ended and how many it left behind (which are killed). */
export async function stopTarget({ pids, processes }) {
  const children = pids.flatMap((pid) => descendants(pid));
  const running = () => processes.filter(({ exit }) => exit === undefined);
  for (const { pid } of running()) process.kill(pid, 'SIGTERM');
  const isForced = !(await within(stopLimitMs, () => running().length === 0));
  for (const { pid } of running()) process.kill(pid, 'SIGKILL');
  await within(stopLimitMs, () => running().length === 0);
  await within(1_000, () => !children.some(isAlive));
  const orphans = children.filter(isAlive);
  for (const pid of orphans) process.kill(pid, 'SIGKILL');
  return { exits: processes.map(({ exit }) => exit), isForced, orphans: orphans.length };
}

/** One try of a first session. */
async function answers(ports, token) {
  const session = new McpSession(ports, token);
  try {
    await session.open();
    return true;
  } catch {
    return false; // not yet; whoever calls has a limit
  } finally {
    await session.close();
  }
}
