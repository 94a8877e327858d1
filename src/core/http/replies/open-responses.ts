import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { PauseWatch } from '../../util/timing/time-limit.ts';
import type { HttpContext } from '../http-context.ts';
import { responseOf } from '../malformed-requests.ts';

/**
 * The most requests that a connection may have sent without an answer. Only pipelining has more than one. Node.js reads
 * on while answers are awaited, so one connection could fill the memory (P8).
 */
export const maxPipelined = 64;

/** A connection with responses. */
interface Connection {
  unanswered: number;
  /** Responses to pipelined requests. Few clients send such requests. */
  readonly pipelined: Set<ServerResponse>;
  readonly onPrefinish: () => void;
  readonly onClose: () => void;
}

/**
 * The responses of a server that have not ended, or whose end the client has not read. It keeps objects of connections,
 * but no object of each response: one that is reachable from old objects outlives collections of new objects
 * (docs/decisions/0085).
 */
export class OpenResponses {
  readonly #slowReaderMs: number;
  readonly #pauses: PauseWatch;
  readonly #connections = new Map<Socket, Connection>();

  /** @param slowReaderMs how long a client may leave the rest of a complete response unread */
  constructor(slowReaderMs: number, pauses: PauseWatch) {
    this.#slowReaderMs = slowReaderMs;
    this.#pauses = pauses;
  }

  /** Holds a response until it is closed. Returns false if its connection has too many. */
  hold(context: HttpContext): boolean {
    const { outgoing } = context;
    const { socket } = outgoing.req;
    const connection = this.#connections.get(socket) ?? this.#begin(socket);
    connection.unanswered += 1;
    context.whenClosed(connection.onClose);
    outgoing.on('prefinish', connection.onPrefinish);
    if (connection.unanswered > 1) holdPipelined(outgoing, connection.pipelined);
    return connection.unanswered <= maxPipelined;
  }

  /** Resolves when the clients have read the responses that are complete by now, after `graceMs` at the latest. */
  async whenRead(graceMs: number): Promise<void> {
    const open = [...this.#connections].flatMap(([socket, { pipelined }]) => [responseOf(socket), ...pipelined]);
    const complete = open.flatMap((outgoing) => (outgoing?.writableEnded ? [outgoing] : []));
    const read = Promise.all(complete.map((each) => new Promise((resolve) => each.once('close', resolve))));
    const giveUp = new AbortController();
    await Promise.race([read, delay(graceMs, undefined, { signal: giveUp.signal }).catch(() => undefined)]);
    giveUp.abort();
  }

  #begin(socket: Socket): Connection {
    const connection: Connection = {
      unanswered: 0,
      pipelined: new Set(),
      onPrefinish: () => this.#limitReading(socket),
      onClose: () => {
        connection.unanswered -= 1;
      },
    };
    if (socket.destroyed) return connection;
    this.#connections.set(socket, connection);
    socket.once('close', () => {
      this.#connections.delete(socket);
      closeWaiting(connection.pipelined);
    });
    return connection;
  }

  /**
   * Destroys a complete response that the client stops reading: it would hold memory and a socket for ever (P8). The time
   * restarts with every part that the client reads.
   */
  #limitReading(socket: Socket): void {
    const outgoing = responseOf(socket);
    // Nothing is left of a response that the operating system took whole.
    if (outgoing === undefined || outgoing.writableLength === 0) return;
    const handleTimeout = (): void => {
      // The client may have read on while the gateway stood still.
      if (this.#pauses.hasJustStoodStill()) socket.setTimeout(this.#slowReaderMs);
      else outgoing.destroy();
    };
    outgoing.setTimeout(this.#slowReaderMs, handleTimeout);
    // Node.js sets its own time for the next request, but not for one that has begun already.
    outgoing.once('finish', () => responseOf(socket) && socket.setTimeout(0));
  }
}

function holdPipelined(outgoing: ServerResponse, pipelined: Set<ServerResponse>): void {
  pipelined.add(outgoing);
  outgoing.once('close', () => pipelined.delete(outgoing));
}

/** Node.js reports the end of a connection only to the response whose turn it is. The others are told here. */
function closeWaiting(pipelined: ReadonlySet<ServerResponse>): void {
  for (const waiting of pipelined) {
    if (waiting.closed || waiting.socket !== null) continue;
    waiting.destroyed = true;
    waiting.emit('close');
  }
}
