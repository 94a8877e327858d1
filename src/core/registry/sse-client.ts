import { maxWaitingBytes } from '../backend/waiting-budget.ts';
import { faultMessage, type Reason } from '../protocol/faults.ts';
import { assumedRevision, isLegacyRevision } from '../protocol/known-revisions.ts';
import { createMessage, type Message } from '../protocol/message/message.ts';
import { modernNotServedData } from '../protocol/modern/modern-not-served.ts';
import { createMessageBatch } from '../reply/event-batch.ts';
import {
  accepted,
  type CompleteAnswer,
  type EventSink,
  faultAnswer,
  type Reply,
  type RequestFacts,
} from '../reply/reply.ts';
import type { Server } from '../server/server.ts';
import { ownInitializeId } from '../session/inbound/one-stream.ts';
import type { SessionLookup } from '../session/lookup.ts';
import type { Session } from '../session/session.ts';
import { type ClientPost, postId } from '../session/session-handle.ts';
import { detach } from '../util/boundary.ts';
import { HeldBytes } from '../util/held-bytes.ts';
import { TimeLimit } from '../util/timing/time-limit.ts';

/** Options of `SseClient`. */
export interface SseClientOptions {
  /** As `Sessions.openConnected`. */
  open(
    use: Pick<SessionLookup, 'server' | 'principal'>,
    initialize: Message,
    reply: Reply,
    onEnding: () => void,
  ): Session | undefined;
  readonly openWithinMs: number;
  /** The client has its session, or has left. */
  onWaited(): void;
  onLeft(): void;
}

const initialized = createMessage({ method: 'notifications/initialized' });

/**
 * One client of HTTP+SSE: its stream, and from `initialize` on its session. Both end with the stream, as for a
 * WebSocket: no official client resumes here.
 *
 * Some clients listen to a new stream and go on without `initialize`, as those with an EventSource do after each
 * reconnect. The gateway initializes the server for them. Such a client then accepts no requests of the server, because
 * its capabilities are not known.
 */
export class SseClient {
  readonly server: Server;
  readonly #lookup: SessionLookup;
  readonly #reply: Reply;
  readonly #options: SseClientOptions;
  readonly #limit: TimeLimit;
  #sink: EventSink | undefined;
  /** False while the client does not read its stream. */
  #keepsUp = true;
  #session: Session | undefined;
  /** True once the session can be used. */
  #isOpen = false;
  /** True once the client has its session, or has left. */
  #hasWaited = false;
  #hasLeft = false;
  /** Set while the session is opened: resolves with the reason if it cannot be. */
  #opening: Promise<Reason | undefined> | undefined;
  /** The messages that wait for the session (P8). */
  readonly #held = new HeldBytes();

  /** @param reply to the GET that opens the stream */
  constructor(lookup: SessionLookup, reply: Reply, options: SseClientOptions) {
    this.server = lookup.server;
    this.#lookup = lookup;
    this.#reply = reply;
    this.#options = options;
    this.#limit = new TimeLimit(() => this.endIfWaiting(), options.openWithinMs).unref();
    reply.onGone(() => this.#leave());
  }

  /** Opens the stream, whose first event names the URL for POSTs. */
  open(): void {
    if (this.#hasLeft) return;
    const sink = this.#reply.stream();
    this.#sink = sink;
    sink.onDrain(() => {
      this.#keepsUp = true;
    });
    sink.onClose(() => this.#leave());
  }

  /**
   * Passes on what the client has posted. What comes while the session is opened waits for it.
   * @param version the revision that the request names, if any
   */
  post(post: ClientPost, reply: Reply, version?: string): void {
    const modern = post.messages.find(({ isModern }) => isModern);
    if (modern !== undefined) return this.#refuseModern(modern, reply);
    if (this.#isOpen) return this.#session?.post(post, reply);
    if (this.#opening === undefined) {
      const [first] = post.messages;
      const opens = !post.isBatch && first?.kind === 'request' && first.method === 'initialize';
      if (opens) return this.#openFor(first, reply);
      // A notification about the session before, such as a cancellation, means nothing to a new server.
      if (!post.messages.some(({ kind }) => kind === 'request')) return reply.answer(accepted);
      this.#begin(this.#initializeItself(reply.request, version));
    }
    this.#postWhenOpen(post, reply);
  }

  /** Refuses a client whose stream has not opened. */
  refuse(reason: Reason): void {
    if (this.#hasLeft) return;
    this.#reply.answer(faultAnswer(reason, null));
    this.#leave();
  }

  /** Ends the stream of a client that has no session. */
  endIfWaiting(): void {
    if (this.#hasWaited || this.#session !== undefined) return;
    if (this.#sink === undefined) return this.refuse('unknown_session');
    this.#sink.end();
    this.#leave();
  }

  /** Opens the session for the client's own `initialize`. Its POST is told whether the session exists. */
  #openFor(initialize: Message, reply: Reply): void {
    const opened = this.#open(initialize, reply.request).then((answer) => {
      const isAccepted = answer.kind === 'accepted';
      // The answer of the server comes first on the stream.
      if (isAccepted) this.#listen();
      reply.answer(answer);
      return isAccepted ? undefined : 'unknown_session';
    });
    this.#begin(opened);
  }

  /** Sends `initialize` in place of the client. */
  async #initializeItself(facts: RequestFacts, version: string | undefined): Promise<Reason | undefined> {
    const protocolVersion = version !== undefined && isLegacyRevision(version) ? version : assumedRevision;
    const clientInfo = { name: 'unknown', version: '0' };
    const params = { protocolVersion, capabilities: {}, clientInfo };
    const initialize = createMessage({ id: ownInitializeId, method: 'initialize', params });
    const answer = await this.#open(initialize, facts);
    if (answer.kind === 'fault') return answer.reason;
    if (answer.kind !== 'accepted') return 'unknown_session';
    // The server gets no request before this notification.
    this.#session?.post(
      { messages: [initialized], isBatch: false },
      answeringTo(facts, () => undefined),
    );
    this.#listen();
    return undefined;
  }

  #begin(opening: Promise<Reason | undefined>): void {
    this.#opening = opening.finally(() => {
      this.#opening = undefined;
    });
    detach(
      'session',
      this.#opening.then(() => undefined),
    );
  }

  /** Opens the session, and resolves with the answer to `initialize`. */
  #open(initialize: Message, facts: RequestFacts): Promise<CompleteAnswer> {
    return new Promise((resolve) => {
      this.#session = this.#options.open(this.#lookup, initialize, answeringTo(facts, resolve), () => {
        if (!this.#isOpen) this.#session = undefined; // the client may try again
      });
      if (this.#hasLeft) this.#endSession();
    });
  }

  /** The session can be used. */
  #listen(): void {
    this.#isOpen = true;
    this.#endWaiting();
    const { request } = this.#reply;
    const sink = this.#sink as EventSink;
    // The stream is open already.
    this.#session?.listen(undefined, { ...answeringTo(request, () => sink.end()), stream: () => sink });
  }

  #postWhenOpen(post: ClientPost, reply: Reply): void {
    const bytes = post.messages.reduce((sum, { text }) => sum + text.length, 0);
    const id = postId(post);
    if (this.#held.bytes + bytes > maxWaitingBytes) return reply.answer(faultAnswer('server_busy', id));
    this.#held.bytes += bytes;
    const passedOn = this.#opening?.then((reason) => {
      this.#held.bytes -= bytes;
      if (reason !== undefined || this.#session === undefined)
        reply.answer(faultAnswer(reason ?? 'unknown_session', id));
      else this.#session.post(post, reply);
    });
    detach('session', passedOn, () => reply.answer(faultAnswer('internal', id)));
  }

  /**
   * Refuses a message of the modern era on the stream. Clients that speak both eras begin with one, and take a POST with
   * an error for the end of the connection.
   */
  #refuseModern(message: Message, reply: Reply): void {
    const { id, kind } = message;
    if (kind !== 'request' || id === undefined || id === null) return reply.answer(accepted);
    const data = { ...modernNotServedData(message) };
    // A client that posts and does not read must not fill the memory (P8).
    if (this.#sink === undefined || !this.#keepsUp) return reply.answer(faultAnswer('modern_not_served', id, data));
    this.#keepsUp = this.#sink.write(createMessageBatch(Buffer.from(faultMessage('modern_not_served', id, data))));
    reply.answer(accepted);
  }

  #leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#endWaiting();
    this.#options.onLeft();
    this.#endSession();
  }

  #endSession(): void {
    detach('session', this.#session?.end('client_gone'));
  }

  #endWaiting(): void {
    if (this.#hasWaited) return;
    this.#hasWaited = true;
    this.#limit.clear();
    this.#options.onWaited();
  }
}

/** A reply to a message that the gateway sends for a client. */
const answeringTo = (request: RequestFacts, answer: Reply['answer']): Reply => ({
  request,
  isGone: false,
  onGone: () => undefined,
  answer,
  stream: () => {
    throw new Error('a client of HTTP+SSE gets no stream for its POST');
  },
});
