import type { IncomingMessage } from 'node:http';
import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';

/** True for a request that wants the connection to become a WebSocket. */
export const wantsWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === 'websocket';

/**
 * Answers a request with another `Upgrade` than websocket as if it had none, which a server may (RFC 9110, section 7.8) and
 * Node.js does where nobody listens for upgrades. Clients of Java offer h2c with every first request.
 *
 * Node.js has let go of the connection when it tells of an upgrade, before the body is read: the head is put before what
 * came behind it, without the header, and the connection goes to the server anew.
 */
export function serveWithoutUpgrade(server: Server, incoming: IncomingMessage, socket: Duplex, rest: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = incoming;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${rawHeaders[i + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), rest]));
  server.emit('encrypted' in socket ? 'secureConnection' : 'connection', socket);
}
