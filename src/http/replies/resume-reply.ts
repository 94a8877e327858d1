import type { Reason, RequestId } from '../../protocol/faults.ts';
import { type EventId, finalSeq } from '../../protocol/wire/event-id.ts';
import { ForwardingReply } from '../../reply/forwarding-reply.ts';
import type { EventSink, Headers, Reply } from '../../reply/reply.ts';
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

  get isContinued(): boolean {
    return this.reply.isContinued ?? false;
  }

  json(text: Buffer, headers?: Headers, status?: number): void {
    this.reply.json(text, headers, status);
  }

  accepted(): void {
    this.reply.accepted();
  }

  nothing(): void {
    this.reply.nothing();
  }

  removed(): void {
    this.reply.removed();
  }

  fault(reason: Reason, id: RequestId | null, data?: Record<string, unknown>): void {
    const finalEvents = finalEventsFor(reason, this.#after);
    if (reason === 'unknown_session' && this.#after.seq === finalSeq) this.reply.nothing();
    else if (finalEvents === undefined) this.reply.fault(reason, id, data);
    else {
      const sink = this.reply.stream();
      sink.write(finalEvents);
      sink.end();
    }
  }

  stream(headers?: Headers): EventSink {
    return this.reply.stream(headers);
  }
}
