import { filterTools, type MayCall } from '../../auth/scopes/filter-tools.ts';
import type { SseEvent } from '../../protocol/wire/sse.ts';
import { createBatch, type EventBatch } from '../../reply/event-batch.ts';
import { ForwardingReply, ForwardingSink } from '../../reply/forwarding-reply.ts';
import type { CompleteAnswer, EventSink, Headers, Reply } from '../../reply/reply.ts';

/**
 * Creates a reply that lists only the tools that its client may call (docs/decisions/0102). The reply is the last stage
 * before the client. So a list is filtered for the credentials of the very request that it answers, also if the list
 * was kept, comes from another instance, or is sent again on a resumed stream.
 * @param mayCall undefined if the client sees all tools
 */
export const filteringReply = (reply: Reply, mayCall: MayCall | undefined): Reply =>
  mayCall === undefined ? reply : new FilteringReply(reply, mayCall);

class FilteringReply extends ForwardingReply {
  readonly #mayCall: MayCall;
  #sink: EventSink | undefined;

  constructor(reply: Reply, mayCall: MayCall) {
    super(reply);
    this.#mayCall = mayCall;
  }

  override answer(answer: CompleteAnswer): void {
    this.reply.answer(answer.kind === 'json' ? { ...answer, text: filterTools(answer.text, this.#mayCall) } : answer);
  }

  override stream(headers?: Headers): EventSink {
    this.#sink ??= new FilteringSink(this.reply.stream(headers), this.#mayCall);
    return this.#sink;
  }
}

/** The stream of such a reply. */
class FilteringSink extends ForwardingSink {
  readonly #mayCall: MayCall;

  constructor(sink: EventSink, mayCall: MayCall) {
    super(sink);
    this.#mayCall = mayCall;
  }

  write(batch: EventBatch): boolean {
    const events = batch.events.map((event) => this.#filter(event));
    const isSame = events.every((event, index) => event === batch.events[index]);
    return this.sink.write(isSame ? batch : createBatch(events));
  }

  #filter(event: SseEvent): SseEvent {
    if (event.kind !== 'message') return event;
    const data = filterTools(event.data, this.#mayCall);
    return data === event.data ? event : { ...event, data };
  }
}
