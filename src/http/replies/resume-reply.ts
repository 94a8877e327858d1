import { type EventId, finalSeq } from '../../protocol/wire/event-id.ts';
import { ForwardingReply } from '../../reply/forwarding-reply.ts';
import { type CompleteAnswer, nothing, type Reply } from '../../reply/reply.ts';
import { finalEventsFor } from '../../reply/unresumable-stream.ts';

/**
 * The reply to a GET with `Last-Event-ID`. A stream that can never be resumed gets its final events instead of an error
 * status.
 */
export class ResumeReply extends ForwardingReply {
  readonly #after: EventId;

  constructor(reply: Reply, after: EventId) {
    super(reply);
    this.#after = after;
  }

  override answer(answer: CompleteAnswer): void {
    if (answer.kind !== 'fault') return this.reply.answer(answer);
    const finalEvents = finalEventsFor(answer.reason, this.#after);
    if (answer.reason === 'unknown_session' && this.#after.seq === finalSeq) this.reply.answer(nothing);
    else if (finalEvents === undefined) this.reply.answer(answer);
    else {
      const sink = this.reply.stream();
      sink.write(finalEvents);
      sink.end();
    }
  }
}
