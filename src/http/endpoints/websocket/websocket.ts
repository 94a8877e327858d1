// src/http/endpoints/websocket: clients on a WebSocket.
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import type { Challenge } from '../../../auth/identity.ts';
import { subprotocol, webSocketLimits } from '../../../backend/websocket-peer.ts';
import type { Reason } from '../../../protocol/faults.ts';
import { pathOf } from '../../../protocol/http/request-header.ts';
import { contain } from '../../../util/boundary.ts';
import type { Endpoint } from '../../http-endpoint.ts';
import { type AdmissionOptions, createAdmission } from '../../pipeline/admission.ts';
import { respondWithChallenge, respondWithFault } from '../../respond.ts';
import { serveWithoutUpgrade, wantsWebSocket } from './other-upgrades.ts';
import { WebSocketConnection, type WebSocketConnectionOptions } from './websocket-connection.ts';

/** The options that differ between connections. */
type PerConnection = 'server' | 'sender' | 'authorization';

/** Options of the WebSocket endpoints of a gateway. */
export interface WebSocketEndpointOptions extends Omit<WebSocketConnectionOptions, PerConnection> {
  /** Limit of one message of a client. */
  readonly maxBodyBytes: number;
}

/** The WebSocket endpoints of a gateway. */
export interface WebSocketEndpoint {
  /** Sets the servers, by the path of their endpoint, and the rules for their clients. Open connections continue. */
  route(servers: ReadonlyMap<string, AdmissionOptions>): void;
  /** Answers the upgrade requests of this HTTP server that want a WebSocket; others are served without an upgrade. */
  attach(http: NetServer): void;
  /** Closes the open connections; resolves when none is left, after `graceMs` at the latest. */
  close(graceMs: number): Promise<void>;
}

/**
 * Creates the endpoints for WebSocket clients (docs/decisions/0019). The guards run before the upgrade; then each
 * client gets a `WebSocketConnection`.
 */
export function createWebSocketEndpoint(options: WebSocketEndpointOptions): WebSocketEndpoint {
  const { sessions, maxBodyBytes, slowReaderMs } = options;
  let byPath: ReadonlyMap<string, ReturnType<typeof withAdmission>> = new Map();
  const connections = new Map<WebSocketConnection, Promise<void>>();
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: true,
    ...webSocketLimits(maxBodyBytes, slowReaderMs),
    handleProtocols: (offered) => offered.has(subprotocol) && subprotocol,
  });
  sockets.on('wsClientError', (_cause, socket, incoming) => refuse(incoming, socket, { reason: 'bad_handshake' }));

  const accept = (
    incoming: IncomingMessage,
    socket: Socket,
    head: Buffer,
    { traffic, ...perConnection }: Pick<WebSocketConnectionOptions, PerConnection> & Pick<AdmissionOptions, 'traffic'>,
  ): void =>
    sockets.handleUpgrade(incoming, socket, head, (peer) => {
      const connection = new WebSocketConnection(peer, socket, { ...options, ...perConnection });
      const onClosed = traffic?.onWebSocket();
      const closed = new Promise<void>((resolve) => {
        peer.once('close', () => {
          connections.delete(connection);
          onClosed?.();
          resolve();
        });
      });
      connections.set(connection, closed);
    });

  const handleUpgrade = (incoming: IncomingMessage, socket: Socket, head: Buffer): void => {
    const endpoint = byPath.get(pathOf(incoming.url ?? ''));
    if (endpoint === undefined) return refuse(incoming, socket, { reason: 'no_such_path' });
    const { server, authorization, traffic, admit } = endpoint;
    const onError = (): Socket => socket.destroy(); // the client left during authentication
    socket.on('error', onError);
    admit(incoming, {
      refused: (challenge) => refuse(incoming, socket, challenge),
      failed: () => socket.destroy(),
      admitted(sender) {
        socket.off('error', onError);
        socket.once('close', () => sender.permit.release());
        const reason = sessions.isDraining ? 'draining' : refuseSubprotocols(incoming);
        if (reason !== undefined) return refuse(incoming, socket, { reason });
        accept(incoming, socket, head, { server, authorization, traffic, sender });
      },
    });
  };

  return {
    route(servers) {
      byPath = new Map([...servers].map(([path, options]) => [path, withAdmission(options)]));
    },
    attach(http) {
      http.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
        const answer = (): void => {
          if (wantsWebSocket(incoming)) handleUpgrade(incoming, socket as Socket, head);
          else serveWithoutUpgrade(http, incoming, socket, head);
        };
        contain('request', answer, () => socket.destroy());
      });
    },
    async close(graceMs) {
      for (const connection of connections.keys()) connection.close('draining');
      const timer = setTimeout(() => {
        for (const peer of sockets.clients) peer.terminate();
      }, graceMs);
      await Promise.all(connections.values());
      clearTimeout(timer);
    },
  };
}

const withAdmission = (options: AdmissionOptions) => {
  const { server, authorization, traffic } = options;
  return { server, authorization, traffic, admit: createAdmission(options) };
};

/** Answers requests without an upgrade to the path of a WebSocket endpoint. */
export const webSocketOnly: Endpoint = (_incoming, outgoing) => {
  outgoing.setHeader('upgrade', 'websocket'); // RFC 9110, section 15.5.22
  respondWithFault(outgoing, 'websocket_required');
};

/** A client that offers other subprotocols but not ours speaks another protocol on the connection. */
function refuseSubprotocols({ headers }: IncomingMessage): Reason | undefined {
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim());
  return offered === undefined || offered.includes(subprotocol) ? undefined : 'subprotocol_required';
}

/** Answers a request that does not become a WebSocket, and ends its connection. */
function refuse(incoming: IncomingMessage, socket: Duplex, challenge: Challenge): void {
  socket.on('error', () => undefined); // the client is gone: nobody is left to answer
  const outgoing = new ServerResponse(incoming);
  outgoing.shouldKeepAlive = false;
  if (challenge.reason === 'bad_handshake') outgoing.setHeader('sec-websocket-version', '13'); // RFC 6455, section 4.4
  outgoing.assignSocket(socket as Socket);
  outgoing.once('finish', () => (socket as Socket).destroySoon());
  respondWithChallenge(outgoing, challenge);
}
