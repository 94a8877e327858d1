import { connect } from 'node:net';
import { join } from 'node:path';

/** An instance that answers later is out of reach for the others, too. */
const connectMs = 2_000;

/**
 * Tries to connect to running instances, as another instance does. Nothing is sent.
 * @param published the address of each, as it is in Redis: a version, and one or more ways
 * @param directory where the sockets of instances on this host are
 * @returns the addresses to which no way leads from here
 */
export async function findUnreachable(published: readonly string[], directory: string): Promise<readonly string[]> {
  const areReached = await Promise.all(published.map((address) => isReached(address, directory)));
  return published.filter((_, index) => !areReached[index]);
}

async function isReached(published: string, directory: string): Promise<boolean> {
  const [, ...ways] = published.split(' ');
  const tried = await Promise.all(ways.map((way) => connects(way, directory)));
  return tried.includes(true);
}

function connects(way: string, directory: string): Promise<boolean> {
  const [scheme = '', ...rest] = way.split(':');
  const where = rest.join(':');
  const at = where.lastIndexOf(':');
  const target =
    scheme === 'unix'
      ? { path: join(directory, where) }
      : { host: where.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(where.slice(at + 1)) };
  return new Promise((resolve) => {
    const socket = connect(target);
    const settle = (isOpen: boolean): void => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.setTimeout(connectMs, () => settle(false));
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
  });
}
