// The Redis of a run: one server for all targets that use one, on a free port, in memory only.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { requireRedis } from './command.mjs';
import { freePort, listens, within } from './wait.mjs';

const startLimitMs = 10_000;

/** Starts a redis-server. Rejects with what to do if there is none. */
export async function startRedis() {
  requireRedis();
  const port = await freePort();
  const folder = mkdtempSync(path.join(tmpdir(), 'bench-redis-'));
  const inMemory = ['--save', '', '--appendonly', 'no'];
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, ...inMemory];
  const child = spawn('redis-server', args, { stdio: 'ignore' });
  const isUp = await within(startLimitMs, () => listens(port));
  if (!isUp) throw new Error(`redis-server did not answer within ${startLimitMs} ms`);
  return {
    port,
    pid: child.pid,
    async stop() {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
