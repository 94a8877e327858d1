import { readOne } from '../../protocol/message/message.ts';
import type { SseEvent } from '../../protocol/wire/sse.ts';
import { createBatch, type EventBatch } from '../../reply/event-batch.ts';
import { ForwardingSink } from '../../reply/forwarding-reply.ts';
import type { EventSink } from '../../reply/reply.ts';

/**
 * Minimum time between a progress notification and a response behind it. The official clients of HTTP+SSE drop the
 * progress handler when they see the response. They process the notification only after all messages of the same read.
 * So messages that the server writes at once must not be sent at once.
 */
const minGapMs = 10;

/** Most bytes of waiting events: the log has the rest (P8). */
const maxWaitingBytes = 256 * 1024;

/**
 * A sink in which a response never directly follows a progress notification: such a response is written a little later.
 */
export class ResponseDelaySink extends ForwardingSink {
  readonly #drainListeners: (() => void)[] = [];
  #waiting: SseEvent[] = [];
  #waitingBytes = 0;
  #progressAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(sink: EventSink) {
    super(sink);
    sink.onClose(() => clearTimeout(this.#timer));
  }

  write({ events }: EventBatch): boolean {
    for (const event of events) this.#waitingBytes += bytesOf(event);
    this.#waiting = this.#waiting.concat(events);
    const keepsUp = this.#timer !== undefined || this.#flush();
    return keepsUp && !this.#isFull;
  }

  override onDrain(listener: () => void): void {
    this.#drainListeners.push(listener);
    this.sink.onDrain(listener);
  }

  override end(): void {
    this.#flush(true);
    this.sink.end();
  }

  get #isFull(): boolean {
    return this.#waitingBytes > maxWaitingBytes;
  }

  /** Writes waiting events, up to a response that would come too early; `isLast` writes all. */
  #flush(isLast = false): boolean {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const wasFull = this.#isFull;
    const due: SseEvent[] = [];
    for (const event of this.#waiting) {
      const message = event.kind === 'message' ? readOne(event.data) : undefined;
      const dueMs = this.#progressAt + minGapMs - performance.now();
      if (message?.kind === 'response' && dueMs > 0 && !isLast) {
        this.#timer = setTimeout(() => this.#flush(), dueMs);
        break;
      }
      if (message?.method === 'notifications/progress') this.#progressAt = performance.now();
      this.#waitingBytes -= bytesOf(event);
      due.push(event);
    }
    this.#waiting = this.#waiting.slice(due.length);
    const keepsUp = due.length === 0 || this.sink.write(createBatch(due));
    if (wasFull && !this.#isFull && keepsUp) for (const listener of this.#drainListeners) listener();
    return keepsUp;
  }
}

const bytesOf = (event: SseEvent): number => (event.kind === 'message' ? event.data.length : 0);
