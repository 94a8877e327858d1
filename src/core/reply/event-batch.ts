import type { Message } from '../protocol/message/message.ts';
import { type EventId, finalSeq } from '../protocol/wire/event-id.ts';
import { encodeEvent, encodeLoggedEvents, type LoggedEvent, noData, type SseEvent } from '../protocol/wire/sse.ts';

/** An event whose text was read in this process; `message` is the result. It does not travel. */
export interface ReadEvent {
  readonly message?: Message | undefined;
}

/**
 * Events of one stream, in order, on their way to one client. A batch never changes. Each transport takes the form that
 * it sends: HTTP and the link between instances the SSE text, a WebSocket the texts of the messages, and the other
 * readers the events. A form is made when it is asked for.
 */
export abstract class EventBatch {
  #text: Buffer | undefined;

  /** The position of the last event that has an id, without its request ids; undefined if no event has an id. */
  abstract readonly at: EventId | undefined;
  abstract readonly events: readonly (SseEvent & ReadEvent)[];

  /** The SSE text of all events. It is encoded once. */
  get text(): Buffer {
    this.#text ??= this.encode();
    return this.#text;
  }

  /** The JSON texts of the messages among the events. */
  get messageTexts(): readonly Buffer[] {
    return this.events.flatMap((event) => (event.kind === 'message' ? [event.data] : []));
  }

  protected abstract encode(): Buffer;
}

/** Events as a log returns them. There are many of these, so their array is kept and not mapped in advance. */
class LoggedBatch extends EventBatch {
  readonly #logged: readonly (LoggedEvent & ReadEvent)[];
  readonly #retryMs: number;
  readonly #requests: string | undefined;

  constructor(logged: readonly (LoggedEvent & ReadEvent)[], retryMs: number, requests: string | undefined) {
    super();
    this.#logged = logged;
    this.#retryMs = retryMs;
    this.#requests = requests;
  }

  get at(): EventId | undefined {
    const newest = this.#logged.at(-1);
    return newest && positionOf(newest);
  }

  get events(): readonly (SseEvent & ReadEvent)[] {
    const requests = this.#requests;
    return this.#logged.map((event) => {
      const { data, last, message } = event;
      const isPriming = data.length === 0;
      const namesRequests = requests !== undefined && (isPriming || last !== true);
      const id = namesRequests ? { ...positionOf(event), requests } : positionOf(event);
      return isPriming ? { kind: 'priming', id, retryMs: this.#retryMs } : { kind: 'message', id, data, message };
    });
  }

  override get messageTexts(): readonly Buffer[] {
    return this.#logged.flatMap(({ data }) => (data.length > 0 ? [data] : []));
  }

  protected encode(): Buffer {
    return encodeLoggedEvents(this.#logged, this.#retryMs, this.#requests);
  }
}

/** A few events that are not in a log. */
class UnloggedBatch extends EventBatch {
  readonly events: readonly SseEvent[];

  constructor(events: readonly SseEvent[]) {
    super();
    this.events = events;
  }

  get at(): EventId | undefined {
    const ids = this.events.flatMap((event) => ('id' in event && event.id !== undefined ? [event.id] : []));
    const newest = ids.at(-1);
    return newest && positionOf(newest);
  }

  protected encode(): Buffer {
    const texts = this.events.map((event) => encodeEvent(event));
    return texts.length === 1 ? (texts[0] ?? noData) : Buffer.concat(texts);
  }
}

const positionOf = ({ stream, epoch, seq }: EventId): EventId => ({ stream, epoch, seq });

/** Creates a batch of any events. */
export const createBatch = (events: readonly SseEvent[]): EventBatch => new UnloggedBatch(events);

/**
 * Creates a batch of events of a log, which it keeps as they are.
 * @param retryMs the reconnection time in priming events
 * @param requests the end of each event id; see `EventId.requests`
 */
export const createLoggedBatch = (
  events: readonly (LoggedEvent & ReadEvent)[],
  retryMs: number,
  requests?: string,
): EventBatch => new LoggedBatch(events, retryMs, requests);

/** Creates a batch of messages without ids: a client cannot resume from them. */
export const createMessageBatch = (...texts: readonly Buffer[]): EventBatch =>
  new UnloggedBatch(texts.map((data) => ({ kind: 'message', data })));

/** Creates a batch of one priming event: an id that the client can resume from, and its reconnection time. */
export const createPrimingBatch = ({ stream, epoch, seq, requests }: EventId, retryMs: number): EventBatch =>
  new UnloggedBatch([
    { kind: 'priming', id: { stream, epoch, seq, ...(requests !== undefined && { requests }) }, retryMs },
  ]);

/** Creates a batch with nothing but the reconnection time. */
export const createRetryBatch = (ms: number): EventBatch =>
  new UnloggedBatch([{ kind: 'retry', retryMs: Math.ceil(ms) }]);

/**
 * Creates the final events of a stream that the gateway cannot continue, one for each of its requests. The last one has
 * an id, from which a client resumes to learn that nothing follows.
 */
export function createFinalBatch(
  texts: readonly string[],
  { stream, epoch }: Pick<EventId, 'stream' | 'epoch'>,
): EventBatch {
  const id = { stream, epoch, seq: finalSeq };
  const isLast = (index: number): boolean => index === texts.length - 1;
  return new UnloggedBatch(
    texts.map((text, index) => ({ kind: 'message', ...(isLast(index) && { id }), data: Buffer.from(text) })),
  );
}

/** A batch that tells a reader of a stream that earlier events are no longer kept. */
export const gapBatch: EventBatch = new UnloggedBatch([{ kind: 'gap' }]);
