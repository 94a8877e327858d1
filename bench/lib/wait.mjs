import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** True as soon as `isDone()` is, or resolves with true; false if it is not within `ms`. It is asked every `pauseMs`. */
export async function within(ms, isDone, pauseMs = 10) {
  const until = performance.now() + ms;
  while (!(await isDone())) {
    if (performance.now() > until) return false;
    await sleep(pauseMs);
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

/** Whether a connection to a port is taken. */
export const listens = (port) =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => resolve(true));
    socket.once('connect', () => socket.destroy()).once('error', () => resolve(false));
  });
