// src/core/backend: connections to MCP servers of every transport, behind one seam.
import type { Reason, RequestId } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Principal } from '../protocol/principal.ts';
import type { CookieJar } from './cookie-jar.ts';
import type { NoTokenReason } from './upstream-tokens.ts';

/**
 * The one seam between the gateway and any MCP server, whatever its transport: send, receive, close.
 * Session code cannot tell a child process from an SSE connection.
 *
 * Promises of every implementation:
 * - Order: messages reach the server in the order of `send`, and `onMessages` reports its messages in the order
 *   written. Exception: where each message is a POST of its own, requests may overlap (http-client/post-order.ts).
 * - Text: messages arrive as they were written (P1), except that raw CR and LF become spaces. A message of the server is
 *   parsed once, by the backend.
 * - Atomicity: a message is handed over whole or not at all; the receiver never sees a part of one.
 * - Loss: only messages sent shortly before the end of the backend may be lost.
 * - End: `onEnd` is called exactly once, and no `onMessages` follows it. `send` returns `'ended'` from then on.
 * - Bounds: at most `maxQueuedBytes` wait towards the server (`'full'` above it). At most one line of `maxLineBytes`
 *   from the server is held.
 */
export interface Backend {
  /** The process id for logs and process lists, or undefined where the server is not a local process. */
  readonly pid: number | undefined;

  /**
   * Hands one message to the server.
   * @param message raw CR and LF in its text become spaces. A large text is not copied: its memory must not change
   *   afterwards
   * @param headers the headers of the client request that carried the message. They go with this message and no other,
   *   on transports that send headers with each message
   * @returns `'sent'`. `'full'` if the server does not read and nothing of this message was accepted. `'ended'` after
   *   the end, perhaps shortly before `onEnd` is called
   */
  send(message: Message, headers?: ForwardedHeaders): Sent;

  /** Stops reading from the server; its output meanwhile waits in the operating system's pipe (P8). */
  pause(): void;

  /** Continues reading. */
  resume(): void;

  /**
   * Ends the backend and everything it started. Nothing is delivered from now on. Idempotent; never rejects. Resolves
   * when nothing of the backend is left, or nothing that can be reached (P10).
   * @param how `isForGood` if the client has ended the session: a server that keeps sessions is told to end it, too.
   *   Otherwise another backend may continue the server's session
   */
  close(how?: CloseOptions): Promise<void>;
}

/** The result of sending a message; see `Backend.send`. */
export type Sent = 'sent' | 'full' | 'ended';

/**
 * The longest line of a server, which is held until it is complete (P8). It has room for the largest answers that are
 * known, files of 40 MiB as base64; V8 holds no text of more than 512 MiB.
 */
export const longestLineBytes = 64 * 1024 * 1024;

/** How a backend ends; see `Backend.close`. */
export interface CloseOptions {
  readonly isForGood?: boolean;
  /** The process may go on for the next session of the same client (docs/decisions/0164). */
  readonly mayBeKept?: boolean;
}

/** A session that uses a process. Another session of the same client may need the process, too. */
export interface ProcessHolder {
  /** True once the session has ended. */
  readonly isOver: boolean;
  /**
   * True if nothing of the session is under way, and its client has left it: it has closed its stream, or makes calls
   * without a GET stream.
   */
  readonly isLeft: boolean;
  /** How long nothing of the session has been under way, in milliseconds. Negative while something is. */
  readonly quietMs: number;
  /** How many requests the server has answered in the session, without `initialize` and pings. */
  readonly answered: number;
  /** A process starts for the session. Not called if the session gets a kept process. */
  onStart(): void;
  /** Gives the process up. The backend is closed within this call. */
  release(): void;
  /** Ends the session, which has given its process up. */
  expire(): void;
}

export type RequestIds = readonly RequestId[];

/**
 * Receives what a backend reports. Each method is called outside of any other call into the backend, and not before
 * `OpenBackend` has returned. An implementation may be a class: wrap it, and never spread it into another object.
 */
export interface BackendEvents {
  /**
   * Reports messages of the server, in order. One call has all messages of one read, so that a burst can be stored and
   * sent at once. No text has a line break. The texts may share memory with a larger buffer: copy a text to keep it.
   * @param relatedRequests the requests on whose response stream the messages came; empty if none, undefined if the
   *   transport cannot tell
   */
  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void;

  /**
   * Reports a text of the server of which something is no message. Its messages, if it is an array that has some, are
   * reported too.
   * @param more how many further texts this one stands for: of many texts, only the first are kept
   */
  onNoise(text: Buffer, more?: number): void;

  /**
   * Reports requests that the server will not answer, with the reason; the backend goes on. All messages about these
   * requests were reported before. Only transports that can lose a single answer call this.
   * @param isFinal sending the requests again would not help. Either the backend has already done so where that is
   *   safe, or the server was away for as long as a request waits. Only one layer retries a call, or the waiting times
   *   would add up (docs/decisions/0189)
   */
  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void;

  /**
   * Opaque resume state: with it another backend can continue after everything reported so far (`OpenOptions.resume`).
   * Emitted rarely, and only by transports whose server-side session outlives the connection. It opens the session at
   * the server, so it is a secret (P12).
   */
  onState?(state: string): void;

  /** Reports the end of the backend. */
  onEnd(end: BackendEnd): void;
}

/** Why a backend ended. */
export interface BackendEnd {
  /**
   * The kind of end:
   * - `closed`: `close` was called.
   * - `exited`: the server ended by itself.
   * - `failed`: the server could not be started.
   * - `line_too_long`: the server wrote a line over the limit and was ended.
   * - `memory_limit`: the server used more memory than allowed and was killed.
   */
  readonly reason: 'closed' | 'exited' | 'failed' | 'line_too_long' | 'memory_limit';
  /**
   * One clear sentence for the operator: exit code, signal, or what to do about a failed start. Never sent to clients.
   */
  readonly detail: string;
  readonly exitCode?: number | null;
  readonly signal?: string | null;
  readonly cause?: unknown;
  /**
   * The last lines that the server wrote to stderr. If it has sent no message, its first lines on stdout come before
   * them. For the operator only: they can hold secrets and contents.
   */
  readonly lastOutput?: readonly string[];
  /** The server could not be started because its command does not exist. */
  readonly isNotFound?: boolean;
  /** The server could not be started because it refused the credentials sent to it, or requires some. */
  readonly isUnauthorized?: boolean | undefined;
  /** The server could not be started because the gateway has no token for it. */
  readonly noToken?: NoTokenReason | undefined;
  /** The HTTP status with which the server refused the first message at the configured URL. */
  readonly status?: number | undefined;
  /** The server answered like a server of another transport. */
  readonly isOtherTransport?: boolean;
  /**
   * The server answered, but neither like a server of this transport and era nor clearly like one of another one: the
   * other ones may be tried.
   */
  readonly isOddAnswer?: boolean | undefined;
  /** Messages that were sent and that the server certainly did not accept, in order: another backend may send them. */
  readonly undelivered?: readonly QueuedMessage[];
}

/** The end of a backend that the gateway closed itself. */
export const closedByGateway: BackendEnd = {
  reason: 'closed',
  detail: 'The gateway closed the connection or process of the server.',
};

/** The end of a backend after an internal error. */
export const endedByFault: BackendEnd = {
  reason: 'failed',
  detail: 'An internal error occurred while the gateway processed a message from this server. The log has the stack.',
};

/** A message, and the headers of the client request that carried it; see `Backend.send`. */
export interface QueuedMessage {
  readonly message: Message;
  readonly headers: ForwardedHeaders;
}

/** Options for opening a backend. */
export interface OpenOptions {
  /**
   * Returns the client's headers for requests that the backend makes on its own: at any time those of the newest client
   * request.
   */
  headers?(): ForwardedHeaders;
  /**
   * Owner of the session; keeps apart the resources that several sessions share (P11). Absent for the gateway's own
   * sessions.
   */
  readonly principal?: Principal | undefined;
  /**
   * The short name of the session, for those who watch its messages. Absent where all clients share the backend, and
   * for the gateway's own sessions.
   */
  readonly session?: string | undefined;
  /**
   * Where an earlier backend, now gone, stopped: this one continues the server's session. The loss of that session is
   * reported like any end.
   */
  readonly resume?: Resume | undefined;
  /** True for a session of the gateway itself, whose calls belong to several modern clients. */
  readonly isGroup?: boolean | undefined;
  /** What the requests of the session have named; see `Affinity.readMeta`. */
  readonly affinity?: string | undefined;
  /**
   * The cookies that the server has set for the session. They outlive the backend, since a balancer recognises by them
   * which server has the session (docs/decisions/0016). Absent where the backend keeps them for itself.
   */
  readonly cookies?: CookieJar | undefined;
  /** The session, if it may use a kept process, and may leave its own process to another session. */
  readonly holder?: ProcessHolder | undefined;
}

/** Where to continue a server's session. */
export interface Resume {
  /** The last state that `onState` reported. */
  readonly state: string;
  /** Unanswered requests. Those whose answers can no longer be fetched are reported as unanswered. */
  readonly pending: RequestIds;
  /** Messages of the server that were reported after `onState` reported that state; they are not reported again. */
  readonly delivered: readonly Message[];
}

/** Opens one backend of a configured server. Never throws for a fault of the server: `onEnd` reports such a fault. */
export type OpenBackend = (events: BackendEvents, options?: OpenOptions) => Backend;
