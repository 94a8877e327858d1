import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { hasResponse } from '../malformed-requests.ts';

/**
 * The most requests that a connection may have sent without an answer. Only pipelining has more than one. Node.js reads
 * on while answers are awaited, so one connection could fill the memory (P8).
 */
export const maxPipelined = 64;

/** The responses of a server that have not ended, or whose end the client has not read. */
export class OpenResponses {
  readonly #slowReaderMs: number;
  readonly #open = new Set<ServerResponse>();
  readonly #bySocket = new WeakMap<Socket, Set<ServerResponse>>();

  /** @param slowReaderMs how long a client may leave the rest of a complete response unread */
  constructor(slowReaderMs: number) {
    this.#slowReaderMs = slowReaderMs;
  }

  /** Holds a response until it is closed. Returns false if its connection has too many. */
  hold(outgoing: ServerResponse): boolean {
    const { socket } = outgoing.req;
    const ofSocket = this.#bySocket.get(socket) ?? this.#begin(socket);
    ofSocket.add(outgoing);
    this.#open.add(outgoing);
    outgoing.once('close', () => {
      ofSocket.delete(outgoing);
      this.#open.delete(outgoing);
    });
    outgoing.once('prefinish', () => this.#limitReading(outgoing));
    return ofSocket.size <= maxPipelined;
  }

  /** Resolves when the clients have read the responses that are complete by now, after `graceMs` at the latest. */
  async whenRead(graceMs: number): Promise<void> {
    const complete = [...this.#open].filter(({ writableEnded }) => writableEnded);
    const read = Promise.all(complete.map((each) => new Promise((resolve) => each.once('close', resolve))));
    const giveUp = new AbortController();
    await Promise.race([read, delay(graceMs, undefined, { signal: giveUp.signal }).catch(() => undefined)]);
    giveUp.abort();
  }

  /** Node.js reports the end of a connection only to the response whose turn it is. The others are told here. */
  #begin(socket: Socket): Set<ServerResponse> {
    const ofSocket = new Set<ServerResponse>();
    this.#bySocket.set(socket, ofSocket);
    socket.once('close', () => {
      for (const waiting of ofSocket) {
        if (waiting.closed || waiting.socket !== null) continue;
        waiting.destroyed = true;
        waiting.emit('close');
      }
    });
    return ofSocket;
  }

  /**
   * Destroys a complete response that the client stops reading: it would hold memory and a socket for ever (P8). The time
   * restarts with every part that the client reads.
   */
  #limitReading(outgoing: ServerResponse): void {
    // Nothing is left of a response that the operating system took whole.
    if (outgoing.writableLength === 0) return;
    const { socket } = outgoing.req;
    outgoing.setTimeout(this.#slowReaderMs, () => outgoing.destroy());
    // Node.js sets its own time for the next request, but not for one that has begun already.
    outgoing.once('finish', () => hasResponse(socket) && socket.setTimeout(0));
  }
}
