import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { type Message, readBody } from '../../protocol/message/message.ts';
import { parseEventId } from '../../protocol/wire/event-id.ts';
import { faultAnswer, type JsonAnswer, type Reply } from '../../reply/reply.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import { detach } from '../../util/boundary.ts';
import { BoundedMap, emptyEntryBytes } from '../../util/bounded-map.ts';
import { HeldBytes } from '../../util/held-bytes.ts';
import type { MessageToIngress, MessageToOwner, RemoteOpening } from '../link/peer-messages.ts';
import { RemoteReply, type RemoteReplyContext } from './remote-reply.ts';

/** Options of `OwnerEndpoint`. */
export interface OwnerEndpointOptions {
  /** The session if this instance has it. */
  findHere(key: string): SessionHandle | undefined;
  /** True while a session that cannot be used is being opened, taken over or ended here. */
  isChanging(key: string): boolean;
  /** Takes over a session that nobody owns, if possible. Never rejects. */
  adopt(key: string, forwarded: ForwardedHeaders | undefined): Promise<void>;
  /** A function that opens a session under this key; undefined if it cannot be opened here. */
  openerOf(key: string, opening: RemoteOpening, initialize: Message): ((reply: Reply) => void) | undefined;
  send(to: string, message: MessageToIngress, body?: Buffer): void;
}

type RequestToOwner = Extract<MessageToOwner, { readonly key: string }>;

/**
 * How many replies are kept after the connection to their client's instance was lost, so that the instance can say that
 * the client has its answer (P8). A call whose reply is dropped ends its wait for the client after a while by itself.
 */
const maxDetached = 1_024;

/**
 * The newest answers in JSON, which may be lost on their way (P8). An instance asks again within seconds. A larger answer
 * is not kept: its request runs again if that is harmless.
 */
const keptAnswers = { maxEntries: 4_096, maxBytes: 8 * 1024 * 1024, maxEntryBytes: 256 * 1024 };

/** The most bytes of requests that wait for takeovers at once (P8). Each may have 4 MiB. */
const maxWaitingBytes = 64 * 1024 * 1024;

/** Receives requests of ingresses at the owner. Each request gets a reply that travels back as peer messages. */
export class OwnerEndpoint {
  readonly #options: OwnerEndpointOptions;
  /** By ingress, then by the request's number there. */
  readonly #replies = new Map<string, Map<number, RemoteReply>>();
  /** Replies without a connection, whose clients may ask again, by attempt. */
  readonly #detached = new BoundedMap<string, RemoteReply>(maxDetached);
  /** Answers in JSON, by attempt. An instance that asks again gets the same answer, and no second run. */
  readonly #answers = new BoundedMap<string, JsonAnswer>(keptAnswers.maxEntries, {
    ...keptAnswers,
    bytesOf: (_, { text }) => text.length + emptyEntryBytes,
  });
  /** The requests that wait for takeovers (P8). */
  readonly #held = new HeldBytes();
  /** The takeovers that requests have asked for, by session. */
  readonly #adoptions = new Map<string, Promise<void>>();

  constructor(options: OwnerEndpointOptions) {
    this.#options = options;
  }

  /** The instances that wait for replies. */
  get ingresses(): Iterable<string> {
    return this.#replies.keys();
  }

  receive(from: string, message: MessageToOwner, body: Buffer): void {
    if (message.kind === 'gone') return this.#noteGone(from, message);
    if (message.kind === 'read') return this.#replies.get(from)?.get(message.n)?.read(message.bytes);
    if (message.kind === 'post' && message.opens !== undefined) return this.#open(from, message, message.opens, body);
    const adoption = this.#adoptionFor(message);
    if (adoption === undefined) return this.#serve(from, message, body);
    if (this.#held.bytes + body.length > maxWaitingBytes) return this.refuse(from, message.n, 'server_busy');
    this.#held.bytes += body.length;
    const served = adoption.then(() => {
      this.#held.bytes -= body.length;
      this.#serve(from, message, body);
    });
    detach('cluster', served, () => this.refuse(from, message.n, 'internal'));
  }

  /** A request that waits for a takeover has no reply yet. Its reply is closed as soon as it has one. */
  #noteGone(from: string, message: Extract<MessageToOwner, { kind: 'gone' }>): void {
    if (this.#close(from, message) || this.#adoptions.size === 0) return;
    const adopted = Promise.all(this.#adoptions.values());
    detach(
      'cluster',
      adopted.then(() => this.#close(from, message)),
    );
  }

  /** Closes a reply. False if there is none. */
  #close(from: string, { n, asksAgain, isAnswered }: Extract<MessageToOwner, { kind: 'gone' }>): boolean {
    const name = attemptId(from, n);
    const reply = this.#replies.get(from)?.get(n) ?? this.#detached.get(name);
    this.#detached.delete(name);
    reply?.close(asksAgain ?? false, isAnswered);
    if (asksAgain && reply !== undefined) this.#detached.set(name, reply);
    return reply !== undefined;
  }

  /** The takeover that the request waits for: one that it asks for, or one for a request before it. */
  #adoptionFor({ key, adopts, request }: RequestToOwner): Promise<void> | undefined {
    const running = this.#adoptions.get(key);
    if (running !== undefined || adopts !== true || this.#options.findHere(key) !== undefined) return running;
    const adoption = this.#options.adopt(key, request.forwarded);
    this.#adoptions.set(key, adoption);
    detach(
      'cluster',
      adoption.then(() => this.#adoptions.delete(key)),
    );
    return adoption;
  }

  #serve(from: string, message: RequestToOwner, body: Buffer): void {
    const { n, key } = message;
    const session = this.#options.findHere(key);
    if (session === undefined) {
      const isEnding = this.#options.isChanging(key);
      return this.#options.send(from, { kind: 'moved', n, ...(isEnding && { isEnding }) });
    }
    if (message.kind === 'remove') session.remove(this.#replyTo(from, message));
    else if (message.kind === 'listen') {
      const after = message.after === undefined ? undefined : parseEventId(message.after + (message.requests ?? ''));
      session.listen(after, this.#replyTo(from, message));
    } else {
      const { isBatch, again, lengths, group } = message;
      const reply = this.#replyTo(from, message);
      const known = again ? this.#answerTo(message.earlier) : undefined;
      if (known !== undefined) return reply.answer(known);
      session.post({ messages: readMessages(body, lengths), isBatch, again, ...(group && { group }) }, reply);
    }
  }

  /** The answer to one of these attempts; undefined if none was answered in JSON. */
  #answerTo(attempts: readonly string[] = []): JsonAnswer | undefined {
    return attempts.map((attempt) => this.#answers.get(attempt)).find((answer) => answer !== undefined);
  }

  #open(from: string, message: Extract<RequestToOwner, { kind: 'post' }>, opening: RemoteOpening, body: Buffer): void {
    const { n, key, lengths } = message;
    const [initialize] = readMessages(body, lengths);
    const open = initialize && this.#options.openerOf(key, opening, initialize);
    if (open === undefined) this.#options.send(from, { kind: 'moved', n });
    else open(this.#replyTo(from, message));
  }

  /** Answers a request that could not be read or whose handling failed. No other request is affected. */
  refuse(from: string, n: number, reason: Reason): void {
    const reply = this.#replies.get(from)?.get(n);
    if (reply === undefined) this.#options.send(from, { kind: 'fault', n, reason, id: null });
    else reply.answer(faultAnswer(reason, null));
  }

  /** The connection to this ingress is lost. Its clients may or may not still wait. */
  ingressLost(ingress: string): void {
    const replies = this.#replies.get(ingress);
    this.#replies.delete(ingress);
    for (const [n, reply] of replies ?? []) {
      reply.close(true);
      this.#detached.set(attemptId(ingress, n), reply);
    }
  }

  #replyTo(from: string, message: RequestToOwner): RemoteReply {
    const { n, request } = message;
    const replies = this.#replies.get(from) ?? new Map<number, RemoteReply>();
    this.#replies.set(from, replies);
    const forget = (): void => {
      replies.delete(n);
      this.#detached.delete(attemptId(from, n));
      if (replies.size === 0 && this.#replies.get(from) === replies) this.#replies.delete(from);
    };
    // One literal for all kinds of requests: each call makes one.
    const context: RemoteReplyContext = {
      request,
      isContinued: message.kind === 'listen' && message.continues,
      name: attemptId(from, n),
      earlier: message.kind === 'remove' ? undefined : message.earlier,
    };
    const channel = {
      send: (answer: MessageToIngress, text?: Buffer) => {
        // A copy: the text may be a part of a much larger buffer.
        if (answer.kind === 'json' && text !== undefined && text.length <= keptAnswers.maxEntryBytes)
          this.#answers.set(attemptId(from, n), { ...answer, text: Buffer.from(text) });
        this.#options.send(from, answer, text);
      },
      forget,
    };
    const reply = new RemoteReply(n, context, channel);
    reply.onGone(forget);
    replies.set(n, reply);
    return reply;
  }
}

/** The name of a forwarded request at its owner. It stays the same if the ingress is renamed later. */
export const attemptId = (ingress: string, n: number): string => `${ingress} ${n}`;

/** Reads the messages that an ingress has already validated. */
function readMessages(body: Buffer, lengths: readonly number[]): readonly Message[] {
  let from = 0;
  return lengths.map((length) => {
    const read = readBody(body.subarray(from, from + length), Number.POSITIVE_INFINITY);
    from += length;
    const [first] = read.ok ? read.messages : [];
    if (!first?.ok) throw new Error('an instance passed on what is no message');
    return first.message;
  });
}
