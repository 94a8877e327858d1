import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
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

/**
 * The ports to choose from. The system gives others to connections, and to servers that ask for any port, so that none of
 * these is taken between its choice and its use. The bus of a Redis Cluster is 10,000 above its port.
 */
const firstPort = 10_000;
const portCount = 10_000;

/** Resolves with whether a socket could be bound. An unreferenced one stays so until this process ends. */
const isBound = (socket, bind) =>
  new Promise((resolve, reject) => {
    socket.once('error', (cause) => (cause.code === 'EADDRINUSE' ? resolve(false) : reject(cause)));
    bind(() => resolve(true));
  });

/** Only one process can bind the UDP port with the number of a TCP port, so it holds that number for as long as it lives. */
async function reserve(port) {
  const socket = createSocket('udp4').unref();
  if (await isBound(socket, (done) => socket.bind({ port, address: '127.0.0.1', exclusive: true }, done))) return true;
  socket.close();
  return false;
}

async function isUnused(port) {
  const server = createServer();
  if (!(await isBound(server, (done) => server.listen(port, '127.0.0.1', done)))) return false;
  await new Promise((resolve) => server.close(resolve));
  return true;
}

/** A port of the loopback address that nobody uses now, and that no other process gets from here while this one lives. */
export async function freePort() {
  for (;;) {
    const port = firstPort + randomInt(portCount);
    if ((await reserve(port)) && (await isUnused(port))) return port;
  }
}

/** Whether a connection to a port is taken. */
export const listens = (port) =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => resolve(true));
    socket.once('connect', () => socket.destroy()).once('error', () => resolve(false));
  });
