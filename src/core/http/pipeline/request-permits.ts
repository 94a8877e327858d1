import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type RequestPermit, uncountedRequestPermit } from '../../quota/request-permit.ts';

/**
 * Returns how many bytes a request may hold until it is answered. A chunked request has no known length, so it reserves
 * the maximum until its body is complete.
 */
export function reservedBytes(headers: IncomingHttpHeaders, maxBodyBytes: number): number {
  if (headers['transfer-encoding'] !== undefined) return maxBodyBytes;
  return Math.min(Number(headers['content-length'] ?? 0), maxBodyBytes); // a larger body is refused
}

/**
 * The open permits of each connection. They belong to the connection and not to one request: Node.js reports the end of
 * a connection only to the response whose turn it is.
 */
const permitsBySocket = new WeakMap<Socket, Set<RequestPermit>>();

/**
 * Releases a permit with the end of its response, however that ends. A response that waits behind others on its
 * connection is never notified that the connection is gone. So the socket is observed, too. Otherwise pipelined
 * requests whose client left would hold their permits for ever.
 */
export function releaseWithResponse(outgoing: ServerResponse, permit: RequestPermit): void {
  if (permit === uncountedRequestPermit) return;
  const { socket } = outgoing.req;
  let permits = permitsBySocket.get(socket);
  if (permits === undefined) {
    const all = new Set<RequestPermit>();
    permitsBySocket.set(socket, all);
    socket.once('close', () => {
      for (const open of all) open.release();
    });
    permits = all;
  }
  const open = permits.add(permit);
  outgoing.once('close', () => {
    open.delete(permit);
    permit.release();
  });
}
