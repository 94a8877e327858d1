import type { Reason, RequestId } from '../../protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../protocol/http/forwarded-headers.ts';
import { detachedMessage } from '../../protocol/message/changed-message.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { Era } from '../../protocol/revisions.ts';
import type { Backend, BackendEnd, BackendEvents, OpenBackend, QueuedMessage, RequestIds, Sent } from '../backend.ts';
import { ReplaceableBackend } from '../replaceable-backend.ts';

/**
 * Takes a backend back that a probe has opened, in place of closing it: the first client of the era can have it. It has
 * got no more than `server/discover` and `initialize`.
 * @param open the probe's requests that the server may still answer
 */
export type KeepProbed = (backend: Backend, era: Era, open: ReadonlySet<RequestId>) => void;

/**
 * A backend that was probed, in the hands of its first client. Answers to the probe do not reach the client. A careless
 * server may refuse the client's handshake because the probe has begun one, or end on it. Then a fresh backend gets the
 * handshake, and the client does not notice.
 */
export class ProbedBackend extends ReplaceableBackend {
  readonly #openFresh: OpenBackend;
  readonly #open: Set<RequestId>;
  /** The client's first request, until its answer. */
  #first: QueuedMessage | undefined;
  #isTrusted = false;

  /**
   * @param probed hands the probed backend over to the events that it gets
   * @param open the probe's requests that the server may still answer
   */
  constructor(
    probed: (events: BackendEvents) => Backend,
    open: ReadonlySet<RequestId>,
    openFresh: OpenBackend,
    user: BackendEvents,
  ) {
    super(user);
    this.#open = new Set(open);
    this.#openFresh = openFresh;
    this.backend = probed(this);
  }

  override send(message: Message, headers: ForwardedHeaders = noHeaders): Sent {
    if (!this.#isTrusted && this.#first === undefined && message.kind === 'request')
      this.#first = { message: detachedMessage(message), headers };
    return super.send(message, headers);
  }

  override onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    const own = this.#open.size === 0 ? messages : messages.filter((message) => !this.#answersProbe(message));
    const id = this.#first?.message.id;
    const answer = id === undefined ? undefined : own.find((each) => each.kind === 'response' && each.id === id);
    if (answer?.isError) return this.#replace();
    if (answer !== undefined) this.#trust();
    if (own.length > 0) super.onMessages(own, relatedRequests);
  }

  override onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void {
    const own = this.#open.size === 0 ? ids : ids.filter((id) => !this.#open.delete(id));
    if (own.length > 0) super.onUnanswered(own, reason, isFinal);
  }

  override onEnd(end: BackendEnd): void {
    if (this.#first === undefined || this.isClosed || end.reason === 'closed') super.onEnd(end);
    else this.#replace();
  }

  #trust(): void {
    this.#isTrusted = true;
    this.#first = undefined;
  }

  #answersProbe({ kind, id }: Message): boolean {
    return kind === 'response' && id != null && this.#open.delete(id);
  }

  #replace(): void {
    const first = this.#first as QueuedMessage;
    this.#trust();
    this.#open.clear();
    this.replace(this.#openFresh, [first]);
  }
}
