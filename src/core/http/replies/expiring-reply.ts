import type { CredentialBound, CredentialWatch } from '../../auth/credential-watch.ts';
import { anonymousIdentity, type Identity } from '../../auth/identity.ts';
import { faultMessage, type RequestId } from '../../protocol/faults.ts';
import type { Era } from '../../protocol/revisions.ts';
import { createMessageBatch, type EventBatch } from '../../reply/event-batch.ts';
import { ForwardingReply, ForwardingSink } from '../../reply/forwarding-reply.ts';
import { type CompleteAnswer, type EventSink, faultAnswer, type Headers, type Reply } from '../../reply/reply.ts';

/**
 * Creates a reply that ends with the credentials of its request (S03). An open stream ends in order, and can be resumed
 * with new credentials. An unanswered request, or one whose stream had no event id to resume from, gets an error. After
 * that error no client repeats a request that may have run. For the session the client is gone then.
 * @param id the id of the request that is answered
 * @param era the era of the request
 */
export const expiringReply = (
  reply: Reply,
  identity: Identity,
  watch: CredentialWatch,
  id: RequestId | null,
  era: Era = 'legacy',
): Reply => (identity === anonymousIdentity ? reply : new ExpiringReply(reply, identity, watch, id, era));

class ExpiringReply extends ForwardingReply implements CredentialBound {
  readonly identity: Identity;
  before: CredentialBound | undefined;
  after: CredentialBound | undefined;
  readonly #watch: CredentialWatch;
  readonly #id: RequestId | null;
  readonly #era: Era;
  /** Listeners for the client's departure; undefined until there is one. */
  #goneListeners: (() => void)[] | undefined;
  #sink: EventSink | undefined;
  /** True once the request was answered, or the credentials have expired. */
  #isAnswered = false;
  #hasEnded = false;
  /** True once an event id was sent, with which the client can resume. */
  #isResumable = false;

  constructor(reply: Reply, identity: Identity, watch: CredentialWatch, id: RequestId | null, era: Era) {
    super(reply);
    this.identity = identity;
    this.#watch = watch;
    this.#id = id;
    this.#era = era;
    watch.hold(this);
    reply.onGone(() => this.#reportGone());
  }

  override get isGone(): boolean {
    return this.#hasEnded || this.reply.isGone;
  }

  override onGone(listener: () => void): void {
    if (this.#goneListeners === undefined) this.#goneListeners = [listener];
    else this.#goneListeners.push(listener);
  }

  override answer(answer: CompleteAnswer): void {
    if (this.#claimAnswer()) this.reply.answer(answer);
  }

  override stream(headers?: Headers): EventSink {
    if (this.#sink !== undefined) return this.#sink;
    if (this.#hasEnded) return closedSink;
    const sink = this.reply.stream(headers);
    sink.onClose(() => this.#watch.release(this));
    this.#sink = new ExpiringSink(sink, this);
    return this.#sink;
  }

  /** Notes a batch that is to be sent. False if the credentials have expired, so that it may not be sent. */
  admitBatch({ at }: EventBatch): boolean {
    if (this.#hasEnded) return false;
    this.#isResumable ||= at !== undefined;
    return true;
  }

  expire(): void {
    if (this.#sink !== undefined) this.#endStream(this.#sink);
    else if (this.#claimAnswer()) this.reply.answer(faultAnswer('credentials_expired', this.#id));
    this.#hasEnded = true;
    this.#isAnswered = true;
    this.#reportGone();
  }

  #endStream(sink: EventSink): void {
    if (this.#id !== null && !this.#isResumable && !this.#isAnswered)
      sink.write(createMessageBatch(Buffer.from(faultMessage('credentials_expired', this.#id, {}, this.#era))));
    sink.end();
  }

  /** True for the first answer. On an open stream a fault or the end is the stream's last event. */
  #claimAnswer(): boolean {
    if (this.#isAnswered) return false;
    this.#isAnswered = true;
    if (this.#sink === undefined) this.#watch.release(this);
    return true;
  }

  #reportGone(): void {
    this.#watch.release(this);
    const listeners = this.#goneListeners;
    this.#goneListeners = undefined;
    for (const listener of listeners ?? []) listener();
  }
}

/** The stream of such a reply. */
class ExpiringSink extends ForwardingSink {
  readonly #reply: ExpiringReply;

  constructor(sink: EventSink, reply: ExpiringReply) {
    super(sink);
    this.#reply = reply;
  }

  write(batch: EventBatch): boolean {
    return this.#reply.admitBatch(batch) && this.sink.write(batch);
  }
}

/** A sink for callers that answer although the client is gone. */
const closedSink: EventSink = {
  write: () => false,
  onDrain: () => undefined,
  onClose: (listener) => queueMicrotask(listener),
  end: () => undefined,
  cut: () => undefined,
};
