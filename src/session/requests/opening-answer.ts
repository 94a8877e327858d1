import { Answer, type AnswerTarget, legacyPolicy } from '../../call/answer.ts';
import type { OpeningAnswer } from '../../call/call-answer.ts';
import type { Call } from '../../call/session-calls.ts';
import type { RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
import { createMessageBatch } from '../../reply/event-batch.ts';
import type { EventSink, Headers, Reply } from '../../reply/reply.ts';
import type { EventDelivery } from '../events/delivery.ts';
import { eventText } from '../events/logged-target.ts';
import type { SessionContext } from '../session-context.ts';

/** Takes the server's answer to `initialize`. */
export interface OpeningHandler {
  answered(call: Call, response: Message): void;
}

/**
 * The stream of the answer to `initialize`, which cannot be resumed. Before that answer the session has no record to
 * log events in, so they are sent without an id (P5). The server is paused while the client does not keep up, since no
 * other limit bounds the bytes that wait for the client.
 */
class OpeningTarget implements AnswerTarget {
  readonly isLogged = false;
  readonly #context: SessionContext;
  readonly #delivery: EventDelivery;
  #sink: EventSink | undefined;

  constructor(context: SessionContext, delivery: EventDelivery) {
    this.#context = context;
    this.#delivery = delivery;
  }

  open(answer: Answer): void {
    this.#sink = answer.connect();
    this.#sink?.onDrain(() => this.#delivery.setPaused(false));
  }

  write(text: Buffer): boolean {
    if (this.#sink?.write(createMessageBatch(text)) === false) this.#delivery.setPaused(true);
    return true;
  }

  respond(response: Message, isLast: boolean): void {
    this.write(eventText(response, this.#context.limits.maxEventBytes));
    if (!isLast) return;
    this.#sink?.end();
    this.#delivery.setPaused(false); // a response that has ended reports no drain
  }

  undeliverable(): void {
    this.#context.drop('undeliverable');
  }
}

/**
 * The answer to `initialize`.
 * @param headers of a successful answer
 */
export function createOpeningAnswer(
  context: SessionContext,
  delivery: EventDelivery,
  id: RequestId,
  reply: Reply,
  headers: Headers | undefined,
): OpeningAnswer {
  const { commitAfterMs } = context.limits;
  const target = new OpeningTarget(context, delivery);
  return new Answer(target, { policy: legacyPolicy, reply, ids: [id], commitAfterMs, headers });
}
