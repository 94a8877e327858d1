import { HeldBytes } from '../../core/backend/held-bytes.ts';
import { maxWaitingBytes } from '../../core/backend/waiting-budget.ts';
import { faultMessage, type Reason } from '../../core/protocol/faults.ts';
import { assumedRevision, isLegacyRevision } from '../../core/protocol/known-revisions.ts';
import { createMessage, type Message } from '../../core/protocol/message/message.ts';
import { modernNotServedData } from '../../core/protocol/modern/modern-not-served.ts';
import type { ConnectedClient, ConnectedClients } from '../../core/registry/connected-clients.ts';
import type { Sessions } from '../../core/registry/sessions.ts';
import { createMessageBatch } from '../../core/reply/event-batch.ts';
import {
  accepted,
  type CompleteAnswer,
  type EventSink,
  faultAnswer,
  type Reply,
  type RequestFacts,
} from '../../core/reply/reply.ts';
import type { Server } from '../../core/server/server.ts';
import type { SessionLookup } from '../../core/session/lookup.ts';
import type { Session } from '../../core/session/session.ts';
import { type ClientPost, postId } from '../../core/session/session-handle.ts';
import { ownInitializeId } from '../../core/session/session-opening.ts';
import { detach } from '../../core/util/boundary.ts';
import { TimeLimit } from '../../core/util/timing/time-limit.ts';

/** The sessions of this instance, as a client needs them. */
export interface SseSessions extends Pick<Sessions, 'openConnected'> {
  readonly clients: Pick<ConnectedClients, 'admit' | 'hold' | 'release' | 'post'>;
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
export class SseClient implements ConnectedClient {
  readonly server: Server;
  readonly #lookup: SessionLookup;
  readonly #reply: Reply;
  readonly #sessions: SseSessions;
  readonly #onWaited: () => void;
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

  private constructor(
    sessions: SseSessions,
    lookup: SessionLookup,
    reply: Reply,
    openWithinMs: number,
    onWaited: () => void,
  ) {
    this.server = lookup.server;
    this.#sessions = sessions;
    this.#lookup = lookup;
    this.#reply = reply;
    this.#onWaited = onWaited;
    this.#limit = new TimeLimit(() => this.endIfWaiting(), openWithinMs).unref();
    reply.onGone(() => this.#leave());
  }

  /**
   * Takes a client that has asked for its stream. The stream opens as soon as every instance knows who holds it.
   * @param reply to the GET that opens the stream
   * @param openMs how long the client may listen without a session, beside the time that its server may take to start
   * @returns the reason if the client is refused
   */
  static connect(sessions: SseSessions, lookup: SessionLookup, reply: Reply, openMs: number): Reason | undefined {
    const { key, server, principal } = lookup;
    const endWaiting = sessions.clients.admit(principal);
    if (typeof endWaiting === 'string') return endWaiting;
    const client = new SseClient(sessions, lookup, reply, openMs + server.startTimeoutMs, endWaiting);
    const held = sessions.clients.hold(key, client);
    if (held === undefined) client.#openStream();
    else
      detach(
        'session',
        held.then((isKnown) => (isKnown ? client.#openStream() : client.#refuse('store_unavailable'))),
        () => client.#refuse('internal'),
      );
    return undefined;
  }

  /** Opens the stream, whose first event names the URL for POSTs. */
  #openStream(): void {
    if (this.#hasLeft) return;
    const sink = this.#reply.stream();
    this.#sink = sink;
    sink.onDrain(() => {
      this.#keepsUp = true;
    });
    sink.onClose(() => this.#leave());
  }

  /** Passes on what the client has posted. What comes while the session is opened waits for it. */
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
  #refuse(reason: Reason): void {
    if (this.#hasLeft) return;
    this.#reply.answer(faultAnswer(reason, null));
    this.#leave();
  }

  endIfWaiting(): void {
    if (this.#hasWaited || this.#session !== undefined) return;
    if (this.#sink === undefined) return this.#refuse('unknown_session');
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
      this.#session = this.#sessions.openConnected(this.#lookup, initialize, answeringTo(facts, resolve), () => {
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
    this.#sessions.clients.release(this.#lookup.key);
    this.#endSession();
  }

  #endSession(): void {
    detach('session', this.#session?.end('client_gone'));
  }

  #endWaiting(): void {
    if (this.#hasWaited) return;
    this.#hasWaited = true;
    this.#limit.clear();
    this.#onWaited();
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
