// Starts a target and ends it, by its pids, with everything it started.
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpSession } from './mcp-session.mjs';
import { descendants, isAlive } from './proc.mjs';
import { freePort, listens, within } from './wait.mjs';

const startLimitMs = 60_000;
const stopLimitMs = 10_000;

// What some machines set, and what would slow each start of Node.js there (45 ms for a file of certificates).
const { NODE_EXTRA_CA_CERTS: _certificates, NODE_OPTIONS: _options, ...environment } = process.env;

/**
 * Starts a target: its one process, or its instances. Resolves when it has answered `initialize`, with `startMs`, the milliseconds until then,
 * and `listenMs`, those until it listened.
 * @param again what an earlier start returned: with its ports and its folder
 * @param logFile gets what it writes to stderr
 * @param places what stands behind it; see `startBehind`
 * @param nodeOptions arguments of Node.js before those of the target
 */
export async function startTarget(name, target, { places, logFile, again, nodeOptions = [] }) {
  const { argv, token, program = process.execPath, instances = 1 } = target;
  const listeners = again?.listeners ?? [];
  while (listeners.length < instances) {
    listeners.push({ port: `${await freePort()}`, adminPort: `${await freePort()}` });
  }
  const folder = again?.folder ?? mkdtempSync(path.join(tmpdir(), 'gangway-bench-'));
  const group = listeners[0].port;
  const startedAt = performance.now();
  const processes = listeners.map((listener) => {
    const at = { ...listener, group, folder };
    for (const [file, text] of Object.entries(target.files?.(at, places) ?? {}))
      writeFileSync(path.join(folder, file), text);
    const words = [...nodeOptions, ...(target.nodeOptions ?? []), ...argv(at, places)];
    return launch(program, words, { logFile, variables: target.variables?.(), ...(target.isPeer && { cwd: folder }) }); // some leave files where they are
  });
  const ports = listeners.map(({ port }) => Number(port));
  const pids = processes.map(({ pid }) => pid);
  const started = { name, ports, pids, processes, listeners, folder, path: target.path, startMs: 0 };
  // Of several instances, each has to know the others: one session after the other is opened by way of two of them.
  for (let answered = 0; answered < instances; ) {
    if (started.listenMs === undefined && (await listens(ports[0]))) started.listenMs = performance.now() - startedAt;
    if (await answers(started, token)) {
      answered += 1;
      continue;
    }
    answered = 0;
    const isOver = processes.some(({ exit }) => exit !== undefined);
    if (isOver || performance.now() - startedAt > startLimitMs) {
      await stopTarget(started);
      const what = isOver ? 'ended at its start' : `did not answer within ${startLimitMs} ms`;
      throw new Error(`${name} ${what}; see ${logFile}`);
    }
    await sleep(2);
  }
  started.startMs = performance.now() - startedAt;
  return started;
}

function launch(program, args, { logFile, variables, cwd }) {
  const log = openSync(logFile, 'a');
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', log],
    cwd,
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
export async function stopTarget({ pids, processes, folder }) {
  const children = pids.flatMap((pid) => descendants(pid));
  const running = () => processes.filter(({ exit }) => exit === undefined);
  for (const { pid } of running()) process.kill(pid, 'SIGTERM');
  const isForced = !(await within(stopLimitMs, () => running().length === 0));
  for (const { pid } of running()) process.kill(pid, 'SIGKILL');
  await within(stopLimitMs, () => running().length === 0);
  await within(1_000, () => !children.some(isAlive));
  const orphans = children.filter(isAlive);
  for (const pid of orphans) process.kill(pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
  return { exits: processes.map(({ exit }) => exit), isForced, orphans: orphans.length };
}

/** One try of a first session. */
async function answers({ ports, path: endpoint }, token) {
  const session = new McpSession(ports, { token, path: endpoint });
  try {
    await session.open();
    return true;
  } catch {
    return false; // not yet; whoever calls has a limit
  } finally {
    await session.close();
  }
}
