import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { root } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';

/** Starts the examples' HTTP+SSE server on a free port, and resolves with its address. The end of the test ends it. */
export async function startOldServer(): Promise<string> {
  const port = await findFreePort();
  const server = spawn(process.execPath, [`${root}examples/servers/sse-server.mjs`], {
    env: { ...process.env, PORT: `${port}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(server, 'exit');
  onTestFinished(async () => {
    server.kill();
    await exited;
  });
  await once(server.stdout, 'data');
  return `127.0.0.1:${port}`;
}
