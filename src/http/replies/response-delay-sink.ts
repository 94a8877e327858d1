import { readBody } from '../../protocol/message/message.ts';
import type { DecodedEvent } from '../../protocol/wire/sse.ts';
import type { EventSink } from '../../reply/reply.ts';

/**
 * Minimum time between a progress notification and a response behind it. The official clients of HTTP+SSE drop the
 * progress handler when they see the response. They process the notification only after all messages of the same read.
 * So messages that the server writes at once must not be sent at once.
 */
const minGapMs = 10;

/** Most bytes of waiting events: the log has the rest (P8). */
const maxWaitingBytes = 256 * 1024;

/** A sink for single events. */
export interface SingleEventSink extends Omit<EventSink, 'write'> {
  /** Writes events in order; returns false like `EventSink.write`. */
  write(events: readonly DecodedEvent[]): boolean;
}

/**
 * Wraps a sink so that a response never directly follows a progress notification: such a response is written a little
 * later.
 */
export function delayResponseAfterProgress(sink: SingleEventSink): SingleEventSink {
  const drained: (() => void)[] = [];
  let waiting: DecodedEvent[] = [];
  let waitingBytes = 0;
  let progressAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;

  const isFull = (): boolean => waitingBytes > maxWaitingBytes;

  /** Writes waiting events, up to a response that would come too early; `isLast` writes all. */
  const flush = (isLast = false): boolean => {
    clearTimeout(timer);
    timer = undefined;
    const wasFull = isFull();
    const due: DecodedEvent[] = [];
    for (const event of waiting) {
      const message = messageOf(event);
      const dueMs = progressAt + minGapMs - performance.now();
      if (message?.kind === 'response' && dueMs > 0 && !isLast) {
        timer = setTimeout(flush, dueMs);
        break;
      }
      if (message?.method === 'notifications/progress') progressAt = performance.now();
      waitingBytes -= event.data?.length ?? 0;
      due.push(event);
    }
    waiting = waiting.slice(due.length);
    const keepsUp = due.length === 0 || sink.write(due);
    if (wasFull && !isFull() && keepsUp) for (const listener of drained) listener();
    return keepsUp;
  };

  sink.onClose(() => clearTimeout(timer));
  return {
    ...sink,
    write(events) {
      for (const event of events) waitingBytes += event.data?.length ?? 0;
      waiting = waiting.length === 0 ? [...events] : waiting.concat(events);
      const keepsUp = timer !== undefined || flush();
      return keepsUp && !isFull();
    },
    onDrain(listener) {
      drained.push(listener);
      sink.onDrain(listener);
    },
    end() {
      flush(true);
      sink.end();
    },
  };
}

function messageOf({ data }: DecodedEvent) {
  if (data === undefined || data.length === 0) return undefined;
  const body = readBody(data, Number.POSITIVE_INFINITY);
  const [first] = body.ok ? body.messages : [];
  return first?.ok ? first.message : undefined;
}
