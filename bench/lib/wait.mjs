import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** True as soon as `isDone()` is, or resolves with true; false if it is not within `ms`. */
export async function within(ms, isDone) {
  const until = performance.now() + ms;
  while (!(await isDone())) {
    if (performance.now() > until) return false;
    await sleep(10);
  }
  return true;
}

/** A port of the loopback address that nobody uses now. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
