// Starts the built gateway in front of a server, for the clients of the judges.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const startLimitMs = 20_000;

/** A port of the loopback address that nobody uses now. */
async function findFreePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts the gateway in front of a server. Resolves when it answers. */
export async function startGateway(options, server) {
  const port = await findFreePort();
  const words = ['--host', '127.0.0.1', '--port', `${port}`, '--admin-port', '0', '--log-level', 'warn', ...options];
  const child = spawn(process.execPath, [program, ...words, server], { stdio: ['ignore', 'inherit', 'inherit'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const isUp = () =>
    fetch(`http://127.0.0.1:${port}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  for (const until = Date.now() + startLimitMs; !(await isUp()); await sleep(20)) {
    if (child.exitCode !== null) throw new Error(`the gateway ended with ${child.exitCode}`);
    if (Date.now() > until) throw new Error('the gateway did not start');
  }
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
