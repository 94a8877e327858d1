import { connect } from 'node:net';
import { join } from 'node:path';

/** A way to an instance: a socket on this host, or TLS over the network. */
export type Way = { readonly path: string } | { readonly host: string; readonly port: number };

/** The name of a socket. A peer names no other file, whatever it publishes. */
export const socketName = /^[0-9a-f]{16}\.sock$/;

/**
 * The ways to an instance that this one can use, the preferred one first.
 * @param published what the instance has published: its versions, and one or more addresses
 * @param directory where the sockets of instances on this host are, if there can be any
 */
export function waysOf(published: string, directory: string | undefined): Way[] {
  return published.split(' ').flatMap((address): Way[] => {
    const [scheme = '', ...rest] = address.split(':');
    const where = rest.join(':');
    if (scheme === 'unix' && directory !== undefined && socketName.test(where))
      return [{ path: join(directory, where) }];
    if (scheme !== 'tcp') return [];
    const at = where.lastIndexOf(':');
    return [{ host: where.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(where.slice(at + 1)) }];
  });
}

/** An instance that answers later is out of reach for the others, too. */
const connectMs = 2_000;

/**
 * Tries to connect to running instances, as another instance does. Nothing is sent.
 * @returns what was published by those to which no way leads from here
 */
export async function findUnreachable(published: readonly string[], directory: string): Promise<readonly string[]> {
  const tried = await Promise.all(published.map((each) => Promise.all(waysOf(each, directory).map(connects))));
  return published.filter((_, index) => tried[index]?.includes(true) !== true);
}

function connects(way: Way): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(way);
    const settle = (isOpen: boolean): void => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.setTimeout(connectMs, () => settle(false));
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
  });
}
