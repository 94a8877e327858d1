import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { onTestFinished } from 'vitest';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import type { BackendEvents } from '../../../../src/core/backend/backend.ts';
import { openWebSocket, type WebSocketOptions } from '../../../../src/features/websocket/backend/websocket-backend.ts';
import { openBackend } from '../../../core/backend/open-backend.ts';
import { createInbox, type Inbox } from '../../../support/wait-for.ts';

/** A WebSocket server of a test. */
export interface Listening {
  readonly url: URL;
  /** The connections, as they come. */
  readonly peers: Inbox<WebSocket>;
  /** The headers of their handshakes. */
  readonly handshakes: NodeJS.Dict<string | string[]>[];
}

/** A server of the ws library; `onPeer` is what it does with a connection. */
export async function listen(
  onPeer: (peer: WebSocket) => void = () => undefined,
  options: ServerOptions = {},
): Promise<Listening> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, ...options });
  const peers = createInbox<WebSocket>();
  const handshakes: Listening['handshakes'] = [];
  server.on('connection', (peer, request) => {
    peer.on('error', () => undefined);
    handshakes.push(request.headers);
    peers.push(peer);
    onPeer(peer);
  });
  await once(server, 'listening');
  onTestFinished(() => {
    for (const peer of server.clients) peer.terminate();
    server.close();
  });
  return { url: urlOf(server.address() as AddressInfo), peers, handshakes };
}

/** An HTTP server that answers a handshake in its own way. */
export async function answerHandshake({
  onRequest = () => undefined,
  onUpgrade,
}: {
  readonly onRequest?: RequestListener;
  readonly onUpgrade?: (socket: Duplex, headers: NodeJS.Dict<string | string[]>) => void;
}): Promise<URL> {
  const server = createServer(onRequest);
  if (onUpgrade !== undefined) {
    server.on('upgrade', ({ headers }, socket) => {
      socket.on('error', () => undefined);
      onUpgrade(socket, headers);
    });
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return urlOf(server.address() as AddressInfo);
}

const urlOf = ({ port }: AddressInfo): URL => new URL(`ws://127.0.0.1:${port}/mcp?key=url-secret`);

/** Opens a backend that is closed with the test. */
export const open = (url: URL, options: Partial<WebSocketOptions> = {}, onMessages?: BackendEvents['onMessages']) =>
  openBackend((events) => openWebSocket({ url, closeGraceMs: 100, ...options }, events), onMessages);
