import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { afterCatchUp } from '../../core/util/timing/time-limit.ts';

/** Rules for an MCP WebSocket on either side: the gateway's as a client and as a server. */

/** The subprotocol that the official SDKs speak: one JSON text in one text frame. */
export const subprotocol = 'mcp';

/**
 * A peer that sends a large message in tiny pieces makes us hold an object for each piece. Joining 262,144 of them
 * stops the program for seconds. Joining this many takes 0.02 s, and a network delivers a large message in pieces of at
 * least 1 KiB.
 */
const minBufferedChunks = 16 * 1024;
const minChunkBytes = 1024;

/**
 * Limits of a WebSocket, as options of the library.
 * @param maxMessageBytes limit of one message from the peer, in one frame or several
 * @param closeGraceMs how long the peer may take to close its side after ours
 */
export const webSocketLimits = (maxMessageBytes: number, closeGraceMs: number) => ({
  maxPayload: maxMessageBytes,
  maxBufferedChunks: Math.max(minBufferedChunks, Math.ceil(maxMessageBytes / minChunkBytes)),
  closeTimeout: closeGraceMs, // the types of the library do not have this yet
  perMessageDeflate: false, // compression costs memory for each connection, and a small message can be a bomb
});

/**
 * How many pings a peer may leave unanswered. One or two are too few: a single-threaded program answers none while one
 * of its tools computes. Closing the connection then would lose that call.
 */
export const maxUnansweredPings = 4;

/**
 * Pings a peer to find one that vanished silently. The pings also keep proxies from treating the connection as idle.
 * Any received byte counts as an answer, since a pong can wait behind a large message.
 * @param socket the socket below the WebSocket
 * @param onSilent called once, `maxUnansweredPings` intervals after the last byte; never while the WebSocket is paused
 */
export function watchPeer(
  peer: WebSocket,
  { socket, intervalMs, onSilent }: { readonly socket: Socket; readonly intervalMs: number; onSilent(): void },
): void {
  let lastBytesRead = socket.bytesRead;
  let unanswered = 0;
  const check = (): void => {
    const hasReceived = socket.bytesRead !== lastBytesRead || peer.isPaused;
    lastBytesRead = socket.bytesRead;
    if (hasReceived) unanswered = 0;
    if (unanswered === maxUnansweredPings) {
      clearInterval(timer);
      onSilent();
    } else if (peer.readyState === peer.OPEN) {
      unanswered += 1;
      peer.ping();
    }
  };
  const timer = setInterval(afterCatchUp(check, intervalMs), intervalMs);
  peer.once('close', () => clearInterval(timer));
}
