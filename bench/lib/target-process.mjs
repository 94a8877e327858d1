// Starts a target and ends it, by its pid, with everything it started.
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
 * Starts a target. Resolves when it has answered `initialize`, with `startMs`, the milliseconds until then.
 * @param logFile gets what it writes to stderr
 * @param places what stands behind it; see `startBehind`
 * @param token what its clients show, if they have to
 * @param nodeOptions arguments of Node.js before those of the target
 */
export async function startTarget(name, { argv, usesToken }, { places, token, logFile, nodeOptions = [] }) {
  const port = await freePort();
  const log = openSync(logFile, 'a');
  const startedAt = performance.now();
  const child = spawn(process.execPath, [...nodeOptions, ...argv(String(port), places)], {
    stdio: ['ignore', 'ignore', log],
    env: environment,
  });
  closeSync(log);
  const target = { name, port, pid: child.pid, exit: undefined, startMs: 0 };
  child.once('exit', (code, signal) => {
    target.exit = { code, signal };
  });
  for (;;) {
    if (await answers(port, usesToken ? token : undefined)) break;
    if (target.exit !== undefined) throw new Error(`${name} ended at its start; see ${logFile}`);
    if (performance.now() - startedAt > startLimitMs) {
      await stopTarget(target);
      throw new Error(`${name} did not answer within ${startLimitMs} ms; see ${logFile}`);
    }
    await sleep(2);
  }
  target.startMs = performance.now() - startedAt;
  return target;
}

/** Ends a target: SIGTERM, then SIGKILL. Says how it ended and how many processes it left behind (which are killed). */
export async function stopTarget(target) {
  const children = descendants(target.pid);
  let isForced = false;
  if (target.exit === undefined) {
    process.kill(target.pid, 'SIGTERM');
    isForced = !(await within(stopLimitMs, () => target.exit !== undefined));
    if (isForced) process.kill(target.pid, 'SIGKILL');
    await within(stopLimitMs, () => target.exit !== undefined);
  }
  await within(1_000, () => !children.some(isAlive));
  const orphans = children.filter(isAlive);
  for (const pid of orphans) process.kill(pid, 'SIGKILL');
  return { exit: target.exit, isForced, orphans: orphans.length };
}

/** One try of a first session. */
async function answers(port, token) {
  const session = new McpSession(port, token);
  try {
    await session.open();
    return true;
  } catch {
    return false; // not yet; whoever calls has a limit
  } finally {
    await session.close();
  }
}
