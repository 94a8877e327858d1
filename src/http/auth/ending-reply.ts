import type { Reason, RequestId } from '../../protocol/faults.ts';
import type { EventSink, Headers, Reply } from '../../session/reply.ts';
import type { CredentialWatch } from './credential-watch.ts';
import { everybody, type Identity } from './identity.ts';

/**
 * A reply that ends with the credentials of its request (S03): an open stream ends in order, to be resumed with new ones; one
 * that was not answered yet is told so, by a status with which no client sends a request again that may have run. For the
 * session its client is gone then.
 * @param id the request that is answered
 */
export const endingReply = (reply: Reply, identity: Identity, watch: CredentialWatch, id: RequestId | null): Reply =>
  identity === everybody ? reply : new EndingReply(reply, identity, watch, id);

class EndingReply implements Reply {
  readonly #reply: Reply;
  readonly #letGo: () => void;
  readonly #gone: (() => void)[] = [];
  #sink: EventSink | undefined;
  /** It was answered, or the credentials have ended. */
  #isOver = false;
  #hasEnded = false;

  constructor(reply: Reply, identity: Identity, watch: CredentialWatch, id: RequestId | null) {
    this.#reply = reply;
    this.#letGo = watch.hold(identity, () => this.#end(id));
    reply.onGone(() => this.#leave());
  }

  get accepts(): Reply['accepts'] {
    return this.#reply.accepts;
  }

  get forwarded(): Reply['forwarded'] {
    return this.#reply.forwarded;
  }

  get receivedAt(): Reply['receivedAt'] {
    return this.#reply.receivedAt;
  }

  get scopes(): Reply['scopes'] {
    return this.#reply.scopes;
  }

  get needs(): Reply['needs'] {
    return this.#reply.needs;
  }

  get isContinued(): boolean {
    return this.#reply.isContinued ?? false;
  }

  get isGone(): boolean {
    return this.#hasEnded || this.#reply.isGone;
  }

  onGone(listener: () => void): void {
    this.#gone.push(listener);
  }

  json(text: Buffer, headers?: Headers, status?: number): void {
    this.#answer(() => this.#reply.json(text, headers, status));
  }

  accepted(): void {
    this.#answer(() => this.#reply.accepted());
  }

  removed(): void {
    this.#answer(() => this.#reply.removed());
  }

  nothing(): void {
    this.#answer(() => this.#reply.nothing());
  }

  fault(reason: Reason, id: RequestId | null, data?: Record<string, unknown>): void {
    this.#answer(() => this.#reply.fault(reason, id, data));
  }

  stream(headers?: Headers): EventSink {
    if (this.#sink !== undefined) return this.#sink;
    if (this.#hasEnded) return closedSink;
    const sink = this.#reply.stream(headers);
    sink.onClose(this.#letGo);
    this.#sink = { ...sink, write: (text, at) => !this.#hasEnded && sink.write(text, at) };
    return this.#sink;
  }

  /** On an open stream a fault or the end is the stream's last. */
  #answer(give: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#sink === undefined) this.#letGo();
    give();
  }

  #end(id: RequestId | null): void {
    this.#hasEnded = true;
    if (this.#sink !== undefined) this.#sink.end();
    else this.#answer(() => this.#reply.fault('credentials_expired', id));
    this.#isOver = true;
    this.#leave();
  }

  #leave(): void {
    this.#letGo();
    for (const listener of this.#gone.splice(0)) listener();
  }
}

/** For who answers though the client is gone. */
const closedSink: EventSink = {
  write: () => false,
  onDrain: () => undefined,
  onClose: (listener) => queueMicrotask(listener),
  end: () => undefined,
  cut: () => undefined,
};
