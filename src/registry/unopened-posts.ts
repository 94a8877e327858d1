import { maxWaitingBytes } from '../backend/waiting-budget.ts';
import type { Reason, RequestId } from '../protocol/faults.ts';
import { assumedRevision, isLegacyRevision } from '../protocol/known-revisions.ts';
import { createMessage, type Message } from '../protocol/message/message.ts';
import { ForwardingReply } from '../reply/forwarding-reply.ts';
import { accepted, type CompleteAnswer, type EventSink, faultAnswer, type Reply } from '../reply/reply.ts';
import { ownInitializeId } from '../session/events/one-stream.ts';
import type { SessionLookup } from '../session/lookup.ts';
import type { ClientPost, SessionHandle } from '../session/session-handle.ts';
import { HeldBytes } from '../util/held-bytes.ts';

/** A POST of a client whose session does not exist. */
export interface EarlyPost extends ClientPost {
  /** The id of its request, for an error; null if there is none. */
  readonly id: RequestId | null;
  /** The revision that the client's header names. */
  readonly version: string | undefined;
}

/** Options of `UnopenedPosts`. */
export interface UnopenedPostsOptions {
  open(lookup: SessionLookup, initialize: Message, reply: Reply): Promise<void>;
  find(lookup: SessionLookup): SessionHandle | Reason;
}

/** A session that is opening. */
interface Opening {
  /** Resolves with the reason if it cannot be opened. */
  readonly done: Promise<Reason | undefined>;
  /** All messages that have come meanwhile (P8). */
  readonly held: HeldBytes;
}

const initialized = createMessage({ method: 'notifications/initialized' });

/**
 * Opens the sessions of clients that listen to a new stream and go on without `initialize`, as clients with an
 * EventSource do after each reconnect. The gateway initializes the server for them. The client then accepts no requests
 * of the server, because its capabilities are not known.
 */
export class UnopenedPosts {
  readonly #options: UnopenedPostsOptions;
  /** The sessions that are opening, by key. Each belongs to a client that listens, and their number is limited. */
  readonly #opening = new Map<string, Opening>();

  constructor(options: UnopenedPostsOptions) {
    this.#options = options;
  }

  /** Opens the session if a message needs one, and passes the messages on. */
  async post(lookup: SessionLookup, { id, version, ...post }: EarlyPost, reply: Reply): Promise<void> {
    // A notification about the session before, such as a cancellation, means nothing to a new server.
    if (!post.messages.some(({ kind }) => kind === 'request')) return reply.answer(accepted);
    const opening = this.#opening.get(lookup.key) ?? this.#open(lookup, version, reply);
    for (const { text } of post.messages) opening.held.bytes += text.length;
    if (opening.held.bytes > maxWaitingBytes) return reply.answer(faultAnswer('server_busy', id));
    const reason = await opening.done;
    const session = reason ?? this.#options.find(lookup);
    if (typeof session === 'string') reply.answer(faultAnswer(session, id));
    else session.post(post, reply);
  }

  #open(lookup: SessionLookup, version: string | undefined, reply: Reply): Opening {
    const protocolVersion = version !== undefined && isLegacyRevision(version) ? version : assumedRevision;
    const clientInfo = { name: 'unknown', version: '0' };
    const params = { protocolVersion, capabilities: {}, clientInfo };
    const done = new Promise<Reason | undefined>((resolve, reject) => {
      const opening = new OwnOpening(reply, resolve);
      this.#options
        .open(lookup, createMessage({ id: ownInitializeId, method: 'initialize', params }), opening)
        .catch(reject);
    })
      .then((reason) => reason ?? this.#confirm(lookup, reply))
      .finally(() => {
        this.#opening.delete(lookup.key);
        opened.held.bytes = 0;
      });
    const opened: Opening = { done, held: new HeldBytes() };
    this.#opening.set(lookup.key, opened);
    return opened;
  }

  /** The server gets no request before this notification. */
  #confirm(lookup: SessionLookup, reply: Reply): Promise<Reason | undefined> {
    const session = this.#options.find(lookup);
    if (typeof session === 'string') return Promise.resolve(session);
    return new Promise((resolve) =>
      session.post({ messages: [initialized], isBatch: false }, new OwnOpening(reply, resolve)),
    );
  }
}

/** The answer to a message of the gateway itself, which is sent for the client of another request. */
class OwnOpening extends ForwardingReply {
  readonly #onAnswered: (reason: Reason | undefined) => void;

  constructor(reply: Reply, onAnswered: (reason: Reason | undefined) => void) {
    super(reply);
    this.#onAnswered = onAnswered;
  }

  override answer(answer: CompleteAnswer): void {
    if (answer.kind === 'accepted') this.#onAnswered(undefined);
    else if (answer.kind === 'fault') this.#onAnswered(answer.reason);
    // A JSON text is the server's refusal of `initialize`.
    else this.#onAnswered(answer.kind === 'json' ? 'unknown_session' : 'internal');
  }

  override stream(): EventSink {
    throw new Error('the answers of one-stream clients have no stream of their own');
  }
}
