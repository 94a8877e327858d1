import type { CallAnswer } from '../../call/modern-answer.ts';
import { type Message, placeOf, readOwn } from '../../protocol/message/message.ts';
import { changesFor } from '../../protocol/modern/missed-changes.ts';
import { type Filter, readFilter } from '../../protocol/modern/subscription-filter.ts';

/**
 * The answer to one `subscriptions/listen` (2026-07-28, basic/patterns/subscriptions), which beside what its instance's process says is told what the processes of
 * other instances say, once it is acknowledged and as far as it was.
 */
export class Subscription implements CallAnswer {
  /** What its client asks for. */
  readonly wanted: Filter;
  readonly #answer: CallAnswer;
  readonly #onOver: () => void;
  readonly #idText: string;
  #agreed: Filter | undefined;
  #isOver = false;

  /** @param onOver nothing more is to be told; called once */
  constructor(request: Message, answer: CallAnswer, onOver: () => void) {
    this.wanted = readFilter(request);
    this.#answer = answer;
    this.#onOver = onOver;
    const id = placeOf(request, 'message', 'id');
    this.#idText = id === undefined ? 'null' : request.text.toString('utf8', id.start, id.end);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  message(text: Buffer): boolean {
    // The first message is the acknowledgement.
    this.#agreed ??= readFilter(readOwn(text));
    return this.#answer.message(text);
  }

  response(...how: Parameters<CallAnswer['response']>): void {
    this.end();
    this.#answer.response(...how);
  }

  fault(...why: Parameters<CallAnswer['fault']>): void {
    this.end();
    this.#answer.fault(...why);
  }

  /** Something has changed elsewhere; undefined if anything may have. */
  hear(change: Message | undefined): void {
    const agreed = this.#agreed;
    if (agreed === undefined || this.#isOver) return;
    for (const text of changesFor(change, agreed, this.#idText)) this.#answer.message(text);
  }

  /** Its client does not wait any more, or it was answered. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOver();
  }
}
