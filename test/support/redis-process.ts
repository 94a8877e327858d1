import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { promisify } from 'node:util';
// @ts-expect-error: a program in JavaScript
import { freePort } from '../../bench/lib/wait.mjs';
import { withDeadline } from './wait-for.ts';

/** The remaining processes and folders, so that they end with this test process in any case. */
const running = new Map<ChildProcess, string>();
process.on('exit', () => {
  for (const [child, folder] of running) {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});

/** A `redis-server` that accepts connections. */
export interface RedisProcess {
  readonly pid: number;
  /** Kills it (SIGKILL, also when it is frozen) and resolves when it has ended. Idempotent. */
  kill(): Promise<void>;
}

/** Another process took the port before the server. */
export class PortTaken extends Error {}

/** Starts `redis-server` in a folder and resolves when it is ready; rejects with its output if it ends before. */
export async function spawnRedis(folder: string, port: number, args: readonly string[]): Promise<RedisProcess> {
  const own = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--daemonize', 'no', '--save', ''];
  // The signal of a limit on the size of files would end Redis. Without it, a write fails, as on a full disk.
  const command = ['-c', 'trap \'\' XFSZ; exec redis-server "$@"', 'redis-server', ...own, ...args];
  const child = spawn('sh', command, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  running.set(child, folder);
  const exited = new Promise<void>((resolve) => {
    const settle = (): void => {
      running.delete(child);
      resolve();
    };
    child.once('exit', settle);
    child.once('error', settle); // it could not be started
  });
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };

  let output = '';
  const ready = new Promise<void>((resolve, reject) => {
    child.once('error', (cause: NodeJS.ErrnoException) =>
      reject(cause.code === 'ENOENT' ? new Error(missing, { cause }) : cause),
    );
    const collect = (chunk: string): void => {
      output += chunk;
      if (output.includes('Ready to accept connections')) resolve();
    };
    child.stdout.setEncoding('utf8').on('data', collect);
    child.stderr.setEncoding('utf8').on('data', collect);
    child.once('close', (code, signal) => {
      if (code === 127) return reject(new Error(missing));
      const Fault = output.includes('Address already in use') ? PortTaken : Error;
      reject(new Fault(`redis-server ended (${code ?? signal}) before it was ready:\n${output}`));
    });
  });
  try {
    await withDeadline(ready, { what: 'redis-server to be ready' });
  } catch (error) {
    await kill();
    throw error;
  }
  return { pid: child.pid as number, kill };
}

/**
 * Makes writes of a process to files fail, or succeed again: what a full disk is to it. Its pipes and sockets stay. The
 * process must ignore SIGXFSZ, as Node.js does.
 */
export async function setDiskFull(pid: number, isFull: boolean): Promise<void> {
  await promisify(execFile)('prlimit', ['--pid', `${pid}`, `--fsize=${isFull ? 0 : 'unlimited'}:unlimited`]);
}

const missing =
  'redis-server is missing, and this test needs a real one (Debian and Ubuntu: apt-get install redis-server)';

/** A port of 127.0.0.1 that nobody uses, and that no other test gets. */
export const findFreePort: () => Promise<number> = freePort;
