import type { Reason, RequestId } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Principal } from '../protocol/principal.ts';

/**
 * The one seam between the gateway and any MCP server, whatever its transport: send, receive, close.
 * Session code cannot tell a child process from an SSE connection.
 *
 * Promises of every implementation:
 * - Order: messages reach the server in the order of `send`, and `onMessages` reports the server's in the order written. Where each is a POST
 *   of its own, requests go beside each other (web/post-order.ts).
 * - Text: what arrives is what was written (P1), except that raw CR and LF became spaces.
 * - Atomicity: a message is handed over whole or not at all; the receiver never sees a part of one.
 * - Loss: messages sent shortly before the end of the backend may be lost; nothing else is.
 * - The end is told exactly once, by `onEnd`; no `onMessages` follows it. `send` after it answers `'ended'`.
 * - Bounds: at most `maxQueuedBytes` wait towards the server (`'full'` above it), at most one line of `maxLineBytes`
 *   is held from it.
 */
export interface Backend {
  /** A number for logs and process lists, or undefined where the server is not a local process. */
  readonly pid: number | undefined;

  /**
   * Hands one message to the server.
   * @param message one JSON text; raw CR and LF in it are turned to spaces. A large one is not copied: its memory must
   *   not change afterwards
   * @param headers of the client's request that brought it: they go with this message and no other, where the transport
   *   has headers of its own for each
   * @returns `'sent'`; `'full'` if the server does not read and nothing of this message was taken; `'ended'`, perhaps
   *   shortly before `onEnd` says so
   */
  send(message: Uint8Array, headers?: ForwardedHeaders): 'sent' | 'full' | 'ended';

  /** Stops reading from the server; what it writes meanwhile waits in the operating system's pipe (P8). */
  pause(): void;

  /** Goes on reading. */
  resume(): void;

  /**
   * Ends the backend and everything it started; from now on nothing is delivered. Idempotent; resolves when nothing of it is left or can be reached (P10).
   * Never rejects.
   * @param how `isForGood` if its client has ended the session: a server that keeps sessions by itself is told so, too.
   *   Else another backend may go on with them
   */
  close(how?: { readonly isForGood?: boolean }): Promise<void>;
}

/** Ids of requests. */
export type RequestIds = readonly RequestId[];

/** What a backend reports. Set when it is opened; each is called outside of any other call into the backend. */
export interface BackendEvents {
  /**
   * Messages of the server, in order: all that one read brought, so that a burst can be stored and sent as one.
   * Each is one line of text without its line break. The buffers may share memory with a larger one: copy what is kept.
   * @param of the requests that they were sent beside; empty if beside none, undefined where the transport does not tell
   */
  onMessages(messages: Buffer[], of?: RequestIds): void;

  /**
   * The server will not answer these requests, for this reason; the backend goes on. Reported after all that the server
   * said of them. Only of transports that can lose one answer and not all.
   * @param isFinal sending them again would not help: the backend has done so where that may be, or the server was away for
   *   as long as a request waits. Of all that could run a call again one does, or their times would add up
   *   (docs/decisions/0075)
   */
  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void;

  /**
   * What another backend needs to go on where this one stands after what was reported so far (`OpenOptions.resume`), told
   * seldom: only of servers whose sessions outlive a connection. It opens the session at the server: a secret (P12).
   */
  onState?(state: string): void;

  /** The backend has ended, for this reason. */
  onEnd(end: BackendEnd): void;
}

/** Why a backend ended. */
export interface BackendEnd {
  /**
   * `closed`: `close` was called; `exited`: the server ended by itself; `failed`: it could not be started;
   * `line_too_long`: it wrote a line over the limit and was ended; `memory_limit`: it used more memory than it may and was
   * killed.
   */
  readonly reason: 'closed' | 'exited' | 'failed' | 'line_too_long' | 'memory_limit';
  /** One clear sentence for the operator: exit code, signal, or what to do about a failed start. Never sent to clients. */
  readonly detail: string;
  readonly exitCode?: number | null;
  readonly signal?: string | null;
  readonly cause?: unknown;
  /** The last lines that the server wrote beside the protocol. For the operator: they can hold secrets and contents. */
  readonly lastOutput?: readonly string[];
  /** It could not be started since its command is not there. */
  readonly isNotFound?: boolean;
  /** It could not be started since the server refused the credentials that it was sent, or wants some. */
  readonly isUnauthorized?: boolean;
  /** The server answered as one does that has another transport. */
  readonly isOtherTransport?: boolean;
  /** Messages that were sent and that the server certainly did not take, in order: another backend may have them. */
  readonly undelivered?: readonly QueuedMessage[];
}

/** A message, and the headers of the client's request that brought it; see `Backend.send`. */
export interface QueuedMessage {
  readonly message: Uint8Array;
  readonly headers: ForwardedHeaders;
}

/** What a backend is opened with. */
export interface OpenOptions {
  /** Headers of the client for what the backend asks by itself: those of its newest request, at any time. */
  headers?(): ForwardedHeaders;
  /** Whose session it is for: what several sessions share is kept apart by it (P11). Absent for the gateway's own. */
  readonly principal?: Principal | undefined;
  /** Where another backend stood, which is no more: the server's session is gone on with. Its loss is told as any end. */
  readonly resume?: Resume | undefined;
}

/** Where to go on. */
export interface Resume {
  /** What `onState` told last. */
  readonly state: string;
  /** Requests that are not answered. Those whose answers cannot be had any more are reported as unanswered. */
  readonly pending: RequestIds;
  /** What was reported of the server after it had told that state; it is not reported again. */
  readonly delivered: readonly Buffer[];
}

/** Opens one backend of a configured server. Never throws for a server's fault: that is reported by `onEnd`. */
export type OpenBackend = (events: BackendEvents, options?: OpenOptions) => Backend;
