import { type EventId, parseEventId } from '../../protocol/wire/event-id.ts';
import { decodeEvents, type SseEvent } from '../../protocol/wire/sse.ts';
import { EventBatch } from '../../reply/event-batch.ts';

/**
 * Events of the owner, as their text arrived on the link between instances. Most clients are sent exactly this text, so
 * the link carries it. Only here is a text of events decoded, and only for the readers that need the events: a client
 * of HTTP+SSE, a group of modern clients, or tracing.
 */
export class ReceivedBatch extends EventBatch {
  readonly at: EventId | undefined;
  readonly #received: Buffer;
  #events: readonly SseEvent[] | undefined;

  /** @param at the position of the last event in the text that has an id, as the owner reports it */
  constructor(received: Buffer, at: string | undefined) {
    super();
    this.#received = received;
    this.at = at === undefined ? undefined : parseEventId(at);
  }

  /** Throws if the text is not a sequence of events, which would be a fault of an instance. */
  get events(): readonly SseEvent[] {
    this.#events ??= decodeEvents(this.#received);
    return this.#events;
  }

  protected encode(): Buffer {
    return this.#received;
  }
}
