// src/features/remote/socket: servers that speak lines on a TCP or Unix socket.

import { connect } from 'node:net';
import {
  type Backend,
  type BackendEnd,
  type BackendEvents,
  closedByGateway,
  longestLineBytes,
} from '../../../core/backend/backend.ts';
import { explainConnectFailure } from '../../../core/backend/connect-failure.ts';
import { OrderedDelivery } from '../../../core/backend/in-order.ts';
import { writeMessage } from '../../../core/backend/line-writer.ts';
import { reportNoise } from '../../../core/protocol/message/server-texts.ts';
import { flattenLineBreaks, LineSplitter } from '../../../core/protocol/wire/lines.ts';
import { detach } from '../../../core/util/boundary.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';

/** Address of a server that speaks the line framing of STDIO on a socket. */
export type SocketAddress = { readonly host: string; readonly port: number } | { readonly path: string };

/** Options of a server on a socket and the limits of its backend. */
export interface SocketOptions {
  readonly address: SocketAddress;
  /** How long the connection may take to be established. */
  readonly connectTimeoutMs?: number;
  /** How long the server may take to close its side after ours. */
  readonly closeGraceMs?: number;
  /** Longest line accepted from the server; stops a server that writes without a line end. */
  readonly maxLineBytes?: number;
  /** Most bytes that wait for a server that does not read. */
  readonly maxQueuedBytes?: number;
  /** The connection is established; this says nothing about whether the server speaks MCP. */
  onStarted?(): void;
}

/** Silence after which the operating system probes for a peer that vanished. */
const keepAliveAfterMs = 30_000;

/**
 * Connects to a server that speaks lines on a TCP or Unix socket, one connection for each backend.
 *
 * Beyond `Backend`: messages sent before the connection is established wait in its queue. The end of the server's
 * stream is the end of the backend (`exited`), even if the server would still read. There is no process (P10). So
 * `close` ends our side, gives the server `closeGraceMs` to end its own, and then closes the connection.
 */
export function openSocket(options: SocketOptions, events: BackendEvents): Backend {
  const {
    address,
    connectTimeoutMs = 10_000,
    closeGraceMs = 1_000,
    maxLineBytes = longestLineBytes,
    maxQueuedBytes = 16 * 1024 * 1024,
    onStarted,
  } = options;
  const where = formatAddress(address);
  const splitter = new LineSplitter({ maxLineBytes });
  const socket = connect({ ...address, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveAfterMs });
  let isConnected = false;
  let isClosing = false;
  let isPaused = false;
  let isEndReported = false;
  /** The reason for the end of the connection, once there is one. */
  let end: BackendEnd | undefined;

  const endConnection = (reason: BackendEnd): void => {
    end ??= reason;
    socket.destroy();
  };
  /** Stops reading until a large line is delivered: `drain` reads nothing while it is busy. */
  const inOrder = new OrderedDelivery('backend', { hold: () => undefined, release: () => drain() });
  const deliver = (lines: Buffer[], then: () => void): void => {
    inOrder.takeTexts(lines.map(flattenLineBreaks), (read) => {
      if (isClosing || isEndReported) return;
      reportNoise(events, [read]);
      if (read.messages.length > 0) events.onMessages(read.messages);
    });
    inOrder.after(() => {
      if (!isClosing && !isEndReported) then();
    });
  };

  const connectLimit = new TimeLimit(() => {
    endConnection({
      reason: 'failed',
      detail: `${where} did not accept the connection within ${connectTimeoutMs} ms.`,
    });
  }, connectTimeoutMs);
  socket.once('connect', () => {
    isConnected = true;
    connectLimit.clear();
    if (!isClosing) onStarted?.();
  });
  const takeChunk = (chunk: Buffer): void => {
    if (isClosing || end !== undefined) return;
    deliver(splitter.push(chunk), () => {
      if (!splitter.overflowed) return;
      endConnection({
        reason: 'line_too_long',
        detail: `The server wrote a line of more than ${maxLineBytes} bytes.`,
      });
    });
  };
  // Not by 'data': there Node.js reads up to 2 MiB from a server that floods before others have their turn (P8).
  const drain = (): void => {
    while (!isPaused && !inOrder.isBusy) {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      takeChunk(chunk);
    }
  };
  socket.on('readable', drain);
  socket.once('end', () => {
    const lastLine = isClosing || end !== undefined ? undefined : splitter.flush();
    // At once: messages queued for a server that does not read would keep the socket open for ever.
    deliver(lastLine === undefined ? [] : [lastLine], () =>
      endConnection({ reason: 'exited', detail: `The server at ${where} closed the connection.` }),
    );
  });
  socket.on('error', (cause) => {
    end ??= { reason: isConnected ? 'exited' : 'failed', detail: explainConnectFailure(cause, where), cause };
  });
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      connectLimit.clear();
      const reportEnd = (): void => {
        isEndReported = true;
        const ownEnd = end ?? { reason: 'exited', detail: `The connection to ${where} broke.` };
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
      if (isClosing || end !== undefined || !socket.writable) return 'ended';
      return writeMessage(socket, message.text, maxQueuedBytes);
    },
    pause() {
      isPaused = !isClosing;
    },
    resume() {
      if (!isPaused) return;
      isPaused = false;
      setImmediate(drain); // never inside a call into the backend
    },
    async close() {
      if (!isClosing && end === undefined) {
        isClosing = true;
        isPaused = false; // a paused backend would not be resumed any more, and the server's end has to be read
        setImmediate(drain);
        if (isConnected) socket.end();
        else socket.destroy();
      }
      const graceTimer = setTimeout(() => socket.destroy(), closeGraceMs);
      await closed;
      clearTimeout(graceTimer);
    },
  };
}

const formatAddress = (address: SocketAddress): string =>
  'path' in address
    ? address.path
    : `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
