import type { Socket } from 'node:net';

/**
 * Makes a function that reads a header and caches the last value of each connection. Most clients send the same value
 * with each request.
 * @param name the name of the header
 */
export function cachePerConnection<T>(
  name: string,
  read: (header: string, socket: Socket) => T,
): (socket: Socket, header: string) => T {
  const cached = Symbol(`the last ${name}`);
  type CachingSocket = Socket & { [cached]?: { readonly header: string; readonly value: T } };
  return (socket, header) => {
    const last = (socket as CachingSocket)[cached];
    if (last !== undefined && last.header === header) return last.value;
    const value = read(header, socket);
    (socket as CachingSocket)[cached] = { header, value };
    return value;
  };
}
