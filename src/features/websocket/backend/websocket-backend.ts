// src/features/websocket/backend: servers on a WebSocket.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { RawData } from 'ws';
import {
  type Backend,
  type BackendEnd,
  type BackendEvents,
  closedByGateway,
  longestLineBytes,
  type OpenOptions,
} from '../../../core/backend/backend.ts';
import { isUnauthorized } from '../../../core/backend/connect-failure.ts';
import { CookieJar } from '../../../core/backend/cookie-jar.ts';
import { HeldBytes } from '../../../core/backend/held-bytes.ts';
import { OrderedDelivery } from '../../../core/backend/in-order.ts';
import type { UpstreamTls } from '../../../core/backend/upstream-tls.ts';
import type { UpstreamTokens } from '../../../core/backend/upstream-tokens.ts';
import { noHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { isLargeText } from '../../../core/protocol/message/message.ts';
import { reportNoise } from '../../../core/protocol/message/server-texts.ts';
import { flattenLineBreaks } from '../../../core/protocol/wire/lines.ts';
import { detach } from '../../../core/util/boundary.ts';
import { loadLibrary } from '../../../core/util/load-library.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';
import { maxUnansweredPings, subprotocol, watchPeer, webSocketLimits } from '../websocket-peer.ts';
import { authorizeHandshake } from './authorized-handshake.ts';
import { explainAnswer, explainBreak, explainClose, explainFailure } from './websocket-failure.ts';

/** Options of a server that speaks MCP on a WebSocket and the limits of its backend. */
export interface WebSocketOptions {
  /** ws or wss, without a user name and without a fragment. */
  readonly url: URL;
  /** Sent with the handshake. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: UpstreamTls;
  /** The token of the handshake; absent if the server needs none. */
  readonly tokens?: UpstreamTokens | undefined;
  /** How long the connection may take to be established, without the handshake. */
  readonly connectTimeoutMs?: number;
  /** How long the server may take to answer the handshake. A host may have to wake up first. */
  readonly answerTimeoutMs?: number;
  /** How long the server may take to close its side after ours. */
  readonly closeGraceMs?: number;
  /** Interval of the pings to the server. */
  readonly heartbeatMs?: number;
  /** Longest message accepted from the server. */
  readonly maxLineBytes?: number;
  /** Most bytes that wait for a server that does not read. */
  readonly maxQueuedBytes?: number;
  /** The connection is established, and the server has chosen the subprotocol of MCP. */
  onStarted?(): void;
}

/**
 * Connects to a server of the WebSocket transport of the SDKs: one connection for each backend, subprotocol `mcp`, one
 * JSON text in each text frame (docs/decisions/0195). A server that does not choose the subprotocol is refused
 * (`failed`), as browsers do.
 *
 * Beyond `Backend`:
 * - Messages sent before the connection is established wait.
 * - A binary frame is read like a text frame: the session checks every message anyway.
 * - The end of the connection is the end of the backend (`exited`). So is a server that violates the WebSocket protocol
 *   or leaves `maxUnansweredPings` unanswered.
 * - There is no process (P10): `close` asks the server to close and closes the connection after `closeGraceMs`.
 * - No redirect is followed. Cookies that the server sets with the handshake go back to it with the next one.
 * - The handshake has the client's headers of the time when the backend is opened, and a token of `tokens`. After a 401
 *   the next backend has another token.
 */
export function openWebSocket(options: WebSocketOptions, events: BackendEvents, opening: OpenOptions = {}): Backend {
  const {
    url,
    headers = {},
    tls = {},
    connectTimeoutMs = 10_000,
    answerTimeoutMs = 60_000,
    closeGraceMs = 1_000,
    heartbeatMs = 15_000,
    maxLineBytes = longestLineBytes,
    maxQueuedBytes = 16 * 1024 * 1024,
    onStarted,
    tokens,
  } = options;
  const where = url.origin; // only the origin: the query of a URL can hold a secret
  const { WebSocket } = loadLibrary('ws');
  const { cookies = new CookieJar() } = opening;
  const handshake = tokens && authorizeHandshake(tokens, opening.headers?.() ?? noHeaders);
  const peer = new WebSocket(url, subprotocol, {
    ...tls,
    ...webSocketLimits(maxLineBytes, closeGraceMs),
    headers: cookies.addTo({ ...headers, ...(handshake?.headers ?? opening.headers?.()) }, url),
    followRedirects: false,
    skipUTF8Validation: true, // the message is read like those of all transports: other bytes become U+FFFD
    finishRequest(request) {
      request.once('socket', (socket) => limitHandshake(socket)); // in a later turn
      if (handshake === undefined) request.end();
      else handshake.finish(request);
    },
  });
  /** Messages sent before the connection is established. */
  let unsent: Uint8Array[] = [];
  const held = new HeldBytes();
  /** Messages of the current read of the socket. */
  let received: Buffer[] = [];
  let isOpened = false;
  let isClosing = false;
  let isPaused = false;
  /** The reason for the end of the connection, once there is one. */
  let end: BackendEnd | undefined;

  const write = (text: Uint8Array): void => {
    held.bytes += text.length;
    peer.send(text, { binary: false }, () => {
      held.bytes -= text.length;
    });
  };
  const endConnection = (reason: BackendEnd): void => {
    end ??= reason;
    peer.terminate();
  };
  /** Stops reading until a large message is delivered. */
  const inOrder = new OrderedDelivery('backend', {
    hold: () => peer.pause(),
    release() {
      if (!isPaused) peer.resume();
    },
  });
  const deliver = (): void => {
    const texts = received.map(flattenLineBreaks);
    received = [];
    inOrder.takeTexts(texts, (read) => {
      if (isClosing) return;
      reportNoise(events, [read]);
      if (read.messages.length > 0) events.onMessages(read.messages);
    });
  };

  let connectLimit: TimeLimit | undefined;
  const limitConnect = (ms: number, option = ''): void => {
    connectLimit?.clear();
    const detail = `${where} did not accept the WebSocket connection within ${ms} ms${option}.`;
    connectLimit = new TimeLimit(() => endConnection({ reason: 'failed', detail }), ms);
  };
  limitConnect(connectTimeoutMs);
  const limitHandshake = (socket: Socket): void => {
    const limit = (): void => {
      if (!isOpened && end === undefined) limitConnect(answerTimeoutMs, ' (--defaults.timeouts.start)');
    };
    if (socket.connecting) socket.once('connect', limit);
    else limit();
  };
  peer.once('unexpected-response', (_, { statusCode = 0, headers: answered }) => {
    cookies.take(answered, url);
    if (statusCode === 401) handshake?.refused();
    endConnection({
      reason: 'failed',
      detail: explainAnswer(statusCode, where),
      status: statusCode,
      isUnauthorized: isUnauthorized(statusCode),
    });
  });
  peer.once('upgrade', ({ headers: answered, socket }: IncomingMessage) => {
    cookies.take(answered, url);
    if (answered['sec-websocket-protocol'] !== subprotocol) {
      const detail = `${where} did not accept the subprotocol ${subprotocol}. Check that it is the URL of an MCP server.`;
      return endConnection({ reason: 'failed', detail });
    }
    const silence = `${where} sent nothing and did not answer pings for ${maxUnansweredPings * heartbeatMs} ms.`;
    const onSilent = () => endConnection({ reason: 'exited', detail: silence });
    watchPeer(peer, { socket, intervalMs: heartbeatMs, onSilent });
  });
  peer.once('open', () => {
    isOpened = true;
    connectLimit?.clear();
    if (isPaused) peer.pause();
    onStarted?.();
    held.bytes = 0;
    for (const text of unsent) write(text);
    unsent = [];
  });
  // One read of the socket can hold many small messages, each an event of its own; the next tick runs after the last of
  // them. Joining the pieces of a large message has already taken the turn.
  peer.on('message', (data: RawData) => {
    const text = data as Buffer;
    if (isClosing || end !== undefined || text.length === 0) return;
    if (received.length === 0) (isLargeText(text) ? setImmediate : process.nextTick)(deliver);
    received.push(text);
  });
  peer.on('error', (cause) => {
    end ??= isOpened ? explainBreak(cause, where, maxLineBytes) : explainFailure(cause, where);
  });
  const closed = new Promise<void>((resolve) => {
    peer.once('close', (code) => {
      connectLimit?.clear();
      deliver();
      const reportEnd = (): void => {
        const ownEnd = end ?? explainClose(code, where);
        events.onEnd(isClosing ? closedByGateway : ownEnd);
        resolve();
      };
      if (inOrder.isBusy) detach('backend', inOrder.idle.then(reportEnd));
      else reportEnd();
    });
  });

  return {
    pid: undefined,
    send(message) {
      if (isClosing || end !== undefined || peer.readyState > peer.OPEN) return 'ended';
      const isOpen = peer.readyState === peer.OPEN;
      const queuedBytes = isOpen ? peer.bufferedAmount : held.bytes;
      if (queuedBytes > 0 && queuedBytes + message.text.length > maxQueuedBytes) return 'full';
      const text = flattenLineBreaks(message.text);
      if (isOpen) {
        write(text);
      } else {
        unsent.push(text);
        held.bytes += text.length;
      }
      return 'sent';
    },
    pause() {
      isPaused = !isClosing;
      if (isPaused) peer.pause();
    },
    resume() {
      isPaused = false;
      if (!inOrder.isBusy) peer.resume();
    },
    close() {
      if (!isClosing && end === undefined) {
        isClosing = true;
        peer.resume(); // a paused backend would not be resumed any more, and the server's end has to be read
        if (peer.readyState === peer.OPEN) peer.close(1000);
        else peer.terminate();
      }
      return closed;
    },
  };
}
