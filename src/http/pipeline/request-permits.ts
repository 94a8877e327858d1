import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type RequestPermit, uncountedRequestPermit } from '../../quota/request-permit.ts';

/**
 * How many bytes a request will hold until it is answered. One that does not say how many (chunked) may have as many as any;
 * when it has come whole, it is known better.
 */
export function reservedBytes({ headers }: IncomingMessage, maxBodyBytes: number): number {
  if (headers['transfer-encoding'] !== undefined) return maxBodyBytes;
  return Math.min(Number(headers['content-length'] ?? 0), maxBodyBytes); // more is refused for its size
}

/** What is open on a connection. */
const openOn = new WeakMap<Socket, Set<RequestPermit>>();

/**
 * Ends a visit with its response, however that ends. A response that waits behind others on its connection is never told that
 * the connection is gone, which is why that is looked at, too: requests that are sent in one go and left alone would hold
 * their places for ever.
 */
export function releaseWithResponse(outgoing: ServerResponse, visit: RequestPermit): void {
  if (visit === uncountedRequestPermit) return;
  const { socket } = outgoing.req;
  let visits = openOn.get(socket);
  if (visits === undefined) {
    const all = new Set<RequestPermit>();
    openOn.set(socket, all);
    socket.once('close', () => {
      for (const open of all) open.release();
    });
    visits = all;
  }
  const open = visits.add(visit);
  outgoing.once('close', () => {
    open.delete(visit);
    visit.release();
  });
}
