// src/features/websocket/endpoint: clients on a WebSocket.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocket, WebSocketServer } from 'ws';
import type { WebSocketEndpoint, WebSocketEndpointOptions } from '../../../app/features/endpoints.ts';
import type { Endpoint } from '../../../core/http/http-context.ts';
import { endIfUnanswered } from '../../../core/http/malformed-requests.ts';
import { type AdmissionOptions, behindAdmission } from '../../../core/http/pipeline/admission.ts';
import { everyResponse } from '../../../core/http/respond.ts';
import { withoutSlash } from '../../../core/http/router.ts';
import type { Reason } from '../../../core/protocol/faults.ts';
import { contain } from '../../../core/util/boundary.ts';
import { loadLibrary } from '../../../core/util/load-library.ts';
import { subprotocol, webSocketLimits } from '../websocket-peer.ts';
import { UpgradeContext } from './upgrade-context.ts';
import { WebSocketConnection } from './websocket-connection.ts';

/**
 * Creates the endpoints for WebSocket clients (docs/decisions/0195). The guards run before the upgrade; then each
 * client gets a `WebSocketConnection`.
 */
export function createWebSocketEndpoint(options: WebSocketEndpointOptions): WebSocketEndpoint {
  const { sessions, maxBodyBytes, slowReaderMs } = options;
  let byPath: ReadonlyMap<string, (context: UpgradeContext) => void> = new Map();
  const connections = new Map<WebSocketConnection, Promise<void>>();
  /** Undefined until a client opens the first WebSocket. */
  let sockets: WebSocketServer | undefined;
  const createSockets = (): WebSocketServer => {
    const created = new (loadLibrary('ws').WebSocketServer)({
      noServer: true,
      clientTracking: true,
      ...webSocketLimits(maxBodyBytes, slowReaderMs),
      handleProtocols: (offered) => offered.has(subprotocol) && subprotocol,
    });
    // The library writes the head of the 101.
    created.on('headers', (lines) => {
      for (const [name, value] of Object.entries(everyResponse)) lines.push(`${name}: ${value}`);
    });
    return created;
  };
  const accept = (context: UpgradeContext, { server, authorization, meters }: AdmissionOptions): void => {
    const { incoming, socket, head, sender, permit } = context;
    if (endIfUnanswered(socket)) return; // the answer to the earlier request would come in the middle of the WebSocket
    const perConnection = { server, authorization, sender, permit };
    const begin = (peer: WebSocket): void => {
      const connection = new WebSocketConnection(peer, socket, { ...options, ...perConnection });
      meters?.webSockets.add(1);
      const closed = new Promise<void>((resolve) => {
        peer.once('close', () => {
          connections.delete(connection);
          meters?.webSockets.add(-1);
          resolve();
        });
      });
      connections.set(connection, closed);
    };
    const refuse = (): void => context.refuse({ reason: 'bad_handshake' });
    sockets ??= createSockets();
    sockets.once('wsClientError', refuse); // a bad handshake is reported before the call returns
    try {
      sockets.handleUpgrade(incoming, socket, head, begin);
    } finally {
      sockets.off('wsClientError', refuse);
    }
  };

  const createEndpoint = (admission: AdmissionOptions): ((context: UpgradeContext) => void) =>
    behindAdmission(admission, {
      serve(context) {
        const reason = sessions.isDraining ? 'draining' : refuseSubprotocols(context.headers);
        if (reason !== undefined) return context.refuse({ reason });
        accept(context, admission);
      },
    });

  return {
    route(servers) {
      byPath = new Map([...servers].map(([path, options]) => [path, createEndpoint(options)]));
    },
    attach(http) {
      http.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
        if (!wantsWebSocket(incoming)) {
          const serve = (): void => serveWithoutUpgrade(http, incoming, socket, head);
          return contain('request', serve, () => socket.destroy());
        }
        const context = new UpgradeContext(incoming, socket as Socket, head);
        const answer = byPath.get(withoutSlash(context.path));
        context.contain(() => (answer === undefined ? context.refuse({ reason: 'no_such_path' }) : answer(context)));
      });
    },
    async close(graceMs) {
      for (const connection of connections.keys()) connection.close('draining');
      const timer = setTimeout(() => {
        for (const peer of sockets?.clients ?? []) peer.terminate();
      }, graceMs);
      await Promise.all(connections.values());
      clearTimeout(timer);
    },
  };
}

/** Answers requests without an upgrade to the path of a WebSocket endpoint. */
export const webSocketOnly: Endpoint = (context) => {
  context.outgoing.setHeader('upgrade', 'websocket'); // RFC 9110, section 15.5.22
  context.respondWithFault('websocket_required');
};

/** A client that offers other subprotocols but not ours speaks another protocol on the connection. */
export function refuseSubprotocols(headers: IncomingHttpHeaders): Reason | undefined {
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim());
  return offered === undefined || offered.includes(subprotocol) ? undefined : 'subprotocol_required';
}

/** True for a request that wants the connection to become a WebSocket. */
const wantsWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === 'websocket';

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
