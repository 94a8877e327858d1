import type { Socket } from 'node:net';

/**
 * Reads a header that most clients show the same with each of their requests: the last one of a connection is remembered, with
 * what was read in it.
 * @param name of the header
 */
export function cachePerConnection<T>(
  name: string,
  read: (header: string) => T,
): (socket: Socket, header: string) => T {
  const shown = Symbol(`the last ${name}`);
  type Showing = Socket & { [shown]?: { readonly header: string; readonly value: T } };
  return (socket, header) => {
    const last = (socket as Showing)[shown];
    if (last !== undefined && last.header === header) return last.value;
    const value = read(header);
    (socket as Showing)[shown] = { header, value };
    return value;
  };
}
