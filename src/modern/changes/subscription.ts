import type { CallAnswer } from '../../call/call-answer.ts';
import { type Message, memberRange } from '../../protocol/message/message.ts';
import { changesMatching } from '../../protocol/modern/missed-changes.ts';
import { readFilter, type SubscriptionFilter } from '../../protocol/modern/subscription-filter.ts';

/**
 * The answer to one `subscriptions/listen` (2026-07-28, basic/patterns/subscriptions). The process of this instance
 * sends its notifications. `notify` adds changes of other instances, after the acknowledgement and only what was
 * agreed.
 */
export class ListenSubscription implements CallAnswer {
  /** The filter that the client asks for. */
  readonly filter: SubscriptionFilter;
  readonly #answer: CallAnswer;
  readonly #onOver: () => void;
  readonly #idText: string;
  #agreed: SubscriptionFilter | undefined;
  #isOver = false;

  /** @param onOver called once, when the subscription has ended */
  constructor(request: Message, answer: CallAnswer, onOver: () => void) {
    this.filter = readFilter(request);
    this.#answer = answer;
    this.#onOver = onOver;
    const id = memberRange(request, 'message', 'id');
    this.#idText = id === undefined ? 'null' : request.text.toString('utf8', id.start, id.end);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  message(notification: Message): boolean {
    // The first message is the acknowledgement.
    this.#agreed ??= readFilter(notification);
    return this.#answer.message(notification);
  }

  response(...how: Parameters<CallAnswer['response']>): void {
    this.end();
    this.#answer.response(...how);
  }

  fault(...why: Parameters<CallAnswer['fault']>): void {
    this.end();
    this.#answer.fault(...why);
  }

  /** Reports a change at another instance; undefined means that anything may have changed. */
  notify(change: Message | undefined): void {
    const agreed = this.#agreed;
    if (agreed === undefined || this.#isOver) return;
    for (const notification of changesMatching(change, agreed, this.#idText)) this.#answer.message(notification);
  }

  /** Ends the subscription: the client has left, or was answered. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOver();
  }
}
