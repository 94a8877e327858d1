import { type EventId, finalSeq } from '../../../core/protocol/wire/event-id.ts';
import { createLoggedBatch, createPrimingBatch } from '../../../core/reply/event-batch.ts';
import { nothing } from '../../../core/reply/reply.ts';
import type { EventLog } from '../../../core/store/event-log.ts';
import { readPages } from '../../../core/store/read-pages.ts';
import { retryWhileUnavailable } from '../../../core/store/retry-unavailable.ts';
import type { ClientReply } from './client-reply.ts';

/** Options of `replay`. */
export interface ReplayOptions {
  /** Reads are retried while the store is away, until the client is gone. */
  readonly log: EventLog;
  readonly key: string;
  readonly reconnectDelayMs: number;
  readonly slowReaderMs: number;
  /** True if streams of the session begin with a priming event. */
  readonly primes: boolean;
  /** Called with the number of events that were written. */
  onWritten?(count: number): void;
  /** Called before a client that does not read is cut off. */
  onSlowReader?(): void;
}

/**
 * Sends a client the events of a stream after `after`, from the log alone. A complete answer is thus delivered even
 * while no instance owns the session. A broken or unknown stream is left to the owner. The cursors of `Streams` do what
 * this cannot, at the owner: they follow a stream that goes on, repair its log, and pause its server.
 * @returns the position that was reached, or `complete` if the whole stream was sent or the client is gone
 */
export async function replay(
  { log: eventLog, key, reconnectDelayMs, slowReaderMs, primes, onWritten, onSlowReader }: ReplayOptions,
  after: EventId,
  reply: ClientReply,
): Promise<EventId | 'complete'> {
  if (after.seq === finalSeq) {
    reply.answer(nothing);
    return 'complete';
  }
  const log: Pick<EventLog, 'read'> = {
    read: (...args) => retryWhileUnavailable(() => eventLog.read(...args), reply.gone),
  };
  const { stream, requests } = after;
  let position = after;
  for (;;) {
    for await (const page of readPages(log, key, stream, position)) {
      if (reply.isDone) return 'complete';
      if (page.outcome !== 'ok' || page.broken) return position;
      const { events, atTail, ended } = page;
      const newest = events.at(-1);
      if (newest === undefined && !ended) return position;
      // The client has the whole stream. If its response has not begun, it is told so.
      if (newest === undefined && !reply.isStream) {
        reply.answer(nothing);
        return 'complete';
      }
      const sink = reply.stream();
      if (primes && !reply.isContinued) {
        // This event's `retry` replaces that of an instance that stopped. A disconnect before the first event then
        // loses nothing.
        sink.write(createPrimingBatch(after, reconnectDelayMs));
        reply.isContinued = true;
      }
      let keepsUp = true;
      if (newest !== undefined) {
        position = { ...after, epoch: newest.epoch, seq: newest.seq };
        keepsUp = sink.write(createLoggedBatch(events, reconnectDelayMs, requests));
        onWritten?.(events.length);
        reply.isContinued = true;
      }
      const isAtTail = atTail || newest === undefined;
      // A slow client does not delay the end: the log could drop the stream before the next read.
      if (isAtTail && ended) {
        reply.endStream();
        return 'complete';
      }
      if (!keepsUp) break; // later pages are read when they can be written
      if (isAtTail) return position;
    }
    if (!(await reply.drains(slowReaderMs))) {
      if (!reply.isDone) onSlowReader?.();
      reply.cutStream();
      return 'complete';
    }
  }
}
