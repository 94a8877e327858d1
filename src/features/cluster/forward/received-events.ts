import { type EventId, parseEventId } from '../../../core/protocol/wire/event-id.ts';
import { decodeEvents, type SseEvent } from '../../../core/protocol/wire/sse.ts';
import { EventBatch } from '../../../core/reply/event-batch.ts';
import { beat } from '../peers/peer-request.ts';

const endOfEvent = Buffer.from('\n\n');
const idField = Buffer.from('id: ');
const lineFeed = 0x0a;

/**
 * Events of the owner, as their text arrived. Most clients are sent exactly this text. Only here is a text of events
 * decoded, and only for the readers that need the events: a client of HTTP+SSE, a group of modern clients, or tracing.
 */
export class ReceivedBatch extends EventBatch {
  /** The newest event id in the text, with the requests that it names. */
  readonly id: EventId | undefined;
  readonly #received: Buffer;
  #events: readonly SseEvent[] | undefined;

  constructor(received: Buffer) {
    super();
    this.#received = received;
    this.id = newestId(received);
  }

  get at(): EventId | undefined {
    return this.id && { stream: this.id.stream, epoch: this.id.epoch, seq: this.id.seq };
  }

  /** True if an event id in the text names these requests. Only an id can be followed by the end of its line. */
  names(requests: string): boolean {
    return this.#received.includes(`${requests}\n`);
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

/** Cuts the text of a stream into whole events: a client must not see the half of one that another owner sends again. */
export class EventCutter {
  #parts: Buffer[] = [];

  /** The events that are complete with this part of the text; undefined if none is. */
  take(part: Buffer): ReceivedBatch | undefined {
    const last = this.#parts.at(-1);
    const isEndSplit = last?.at(-1) === lineFeed && part[0] === lineFeed;
    const found = part.lastIndexOf(endOfEvent);
    const end = found >= 0 ? found + endOfEvent.length : isEndSplit ? 1 : 0;
    if (end === 0) {
      this.#parts.push(part);
      return undefined;
    }
    const whole = part.subarray(0, end);
    const text = withoutBeats(this.#parts.length === 0 ? whole : Buffer.concat([...this.#parts, whole]));
    this.#parts = end < part.length ? [part.subarray(end)] : [];
    return text.length === 0 ? undefined : new ReceivedBatch(text);
  }

  /** Forgets the half of an event that a lost owner has left. */
  clear(): void {
    this.#parts = [];
  }
}

/** The owner writes whole events, so a beat is a line of its own. */
function withoutBeats(text: Buffer): Buffer {
  const parts: Buffer[] = [];
  let from = 0;
  for (let at = text.indexOf(beat); at >= 0; at = text.indexOf(beat, at + 1)) {
    if (at > 0 && text[at - 1] !== lineFeed) continue;
    parts.push(text.subarray(from, at));
    from = at + beat.length;
  }
  return from === 0 ? text : Buffer.concat([...parts, text.subarray(from)]);
}

/** Message texts are one line each, so a line that begins with the field is the field. */
function newestId(text: Buffer): EventId | undefined {
  for (let at = text.lastIndexOf(idField); at >= 0; at = at === 0 ? -1 : text.lastIndexOf(idField, at - 1)) {
    if (at > 0 && text[at - 1] !== lineFeed) continue;
    return parseEventId(text.toString('latin1', at + idField.length, text.indexOf(lineFeed, at)));
  }
  return undefined;
}
