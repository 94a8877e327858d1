import type { IncomingMessage } from 'node:http';
import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { endIfUnanswered } from '../../malformed-requests.ts';

/** True for a request that wants the connection to become a WebSocket. */
export const wantsWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === 'websocket';

/**
 * Answers a request with another `Upgrade` than websocket as if it had none, which a server may do (RFC 9110, section
 * 7.8). Node.js does the same without an upgrade listener. Clients of Java offer h2c with every first request.
 *
 * Node.js detaches the connection when it reports an upgrade, before the body is read. So the head without the header
 * is put back before the rest of the input, and the connection is passed to the server again.
 */
export function serveWithoutUpgrade(server: Server, incoming: IncomingMessage, socket: Duplex, rest: Buffer): void {
  if (endIfUnanswered(socket)) return; // the answer to the earlier request could not come any more
  const { method, url, httpVersion, rawHeaders } = incoming;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${rawHeaders[i + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), rest]));
  server.emit('encrypted' in socket ? 'secureConnection' : 'connection', socket);
}
