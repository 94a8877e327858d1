// The Redis of a run: one server for all targets that use one, on a free port, in memory only.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { requireRedis } from './command.mjs';
import { freePort, within } from './wait.mjs';

const startLimitMs = 10_000;

/** The bus of a cluster has a port that is 10,000 above. */
const maxPort = 55_000;

/** Starts a redis-server with these arguments more. Rejects with what to do if there is none. */
export async function startRedis(more = []) {
  requireRedis('redis-server');
  let port = await freePort();
  while (port >= maxPort) port = await freePort();
  const folder = mkdtempSync(path.join(tmpdir(), 'bench-redis-'));
  const inMemory = ['--save', '', '--appendonly', 'no'];
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, ...inMemory, ...more];
  const child = spawn('redis-server', args, { stdio: 'ignore' });
  const isUp = await within(startLimitMs, () => accepts(port));
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

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => socket.destroy()).end();
  });
}
