import type { CallAnswer } from '../../../../core/call/call-answer.ts';
import type { CallReport } from '../../../../core/call/call-report.ts';
import { type Message, memberRange } from '../../../../core/protocol/message/message.ts';
import { changesMatching } from '../../../../core/protocol/modern/missed-changes.ts';
import { listenResult } from '../../../../core/protocol/modern/renumber.ts';
import {
  acknowledgementOf,
  readFilter,
  type SubscriptionFilter,
} from '../../../../core/protocol/modern/subscription-filter.ts';

/** The most changes that are kept before the acknowledgement; beyond that, anything may have changed (P8). */
const maxEarly = 100;

/**
 * The answer to one `subscriptions/listen` (2026-07-28, basic/patterns/subscriptions), at a server of either era. A modern
 * server sends the acknowledgement and its notifications itself. For a legacy server, `acknowledge` says what was agreed.
 * `notify` adds changes that others report, after the acknowledgement and only what was agreed.
 */
export class Subscription implements CallAnswer {
  /** The filter that the client asks for. */
  readonly filter: SubscriptionFilter;
  readonly #answer: CallAnswer;
  readonly #onOver: () => void;
  readonly #idText: string;
  #agreed: SubscriptionFilter | undefined;
  /** Changes from before the acknowledgement. */
  #early: (Message | undefined)[] = [];
  #isOver = false;

  /** @param onOver called once, when the subscription has ended */
  constructor(request: Message, answer: CallAnswer, onOver: () => void) {
    this.filter = readFilter(request);
    this.#answer = answer;
    this.#onOver = onOver;
    const id = memberRange(request, 'message', 'id');
    this.#idText = id === undefined ? 'null' : request.text.toString('utf8', id.start, id.end);
  }

  get report(): CallReport | undefined {
    return this.#answer.report;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The newest filter that was acknowledged; undefined before the first. */
  get agreed(): SubscriptionFilter | undefined {
    return this.#agreed;
  }

  message(notification: Message): boolean {
    // The first message is the acknowledgement.
    if (this.#agreed !== undefined) return this.#answer.message(notification);
    this.#agreed = readFilter(notification);
    return this.#begin(notification);
  }

  response(...how: Parameters<CallAnswer['response']>): void {
    this.end();
    this.#answer.response(...how);
  }

  fault(...why: Parameters<CallAnswer['fault']>): void {
    this.end();
    this.#answer.fault(...why);
  }

  /** Begins with the acknowledgement of this filter. Later ones replace it: not all resources can be had again. */
  acknowledge(agreed: SubscriptionFilter): void {
    const isFirst = this.#agreed === undefined;
    this.#agreed = agreed;
    if (isFirst) this.#begin(acknowledgementOf(agreed, this.#idText));
  }

  /** Reports a change; undefined means that anything may have changed. */
  notify(change: Message | undefined): void {
    if (this.#isOver) return;
    if (this.#agreed !== undefined) {
      for (const notification of changesMatching(change, this.#agreed, this.#idText))
        this.#answer.message(notification);
    } else if (this.#early.length < maxEarly) this.#early.push(change);
    else this.#early = [undefined];
  }

  /** Ends the subscription: the client has left, or was answered. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOver();
  }

  /** Ends the subscription in order ("Graceful Closure"). */
  close(): void {
    if (this.#isOver) return;
    if (this.#agreed === undefined) this.fault('draining');
    else this.response(listenResult(this.#idText), 200);
  }

  #begin(acknowledgement: Message): boolean {
    const isTaken = this.#answer.message(acknowledgement);
    for (const change of this.#early.splice(0)) this.notify(change);
    return isTaken;
  }
}
