import { type EventId, finalSeq, formatEventId } from '../../protocol/wire/event-id.ts';
import { encodeEvents, noData } from '../../protocol/wire/sse.ts';
import { bytesPerWrite, eventsPerRead, eventsUpTo } from '../../session/events/cursor.ts';
import { retryingLog } from '../../session/events/patient-log.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { ClientReply } from './client-reply.ts';

/** What a replay needs. */
export interface ReplayOptions {
  /** While it is away it is asked again, until the client is gone. */
  readonly log: EventLog;
  readonly key: string;
  readonly retryMs: number;
  readonly slowReaderMs: number;
  /** True if streams of the session begin with a priming event. */
  readonly primes: boolean;
  /** So many events were written. */
  onWritten?(count: number): void;
}

/**
 * Sends a client what the log has of a stream behind an event, which needs no owner: an answer that is complete is had in
 * this way while its session is held by nobody. What is broken, unknown or not there yet is left to the owner to say.
 * @returns the place that was reached, or `complete` if the stream has ended and was sent, or the client is gone
 */
export async function replay(
  { log: impatient, key, retryMs, slowReaderMs, primes, onWritten }: ReplayOptions,
  after: EventId,
  reply: ClientReply,
): Promise<EventId | 'complete'> {
  if (after.seq === finalSeq) {
    reply.nothing();
    return 'complete';
  }
  const log = retryingLog(impatient, reply.gone);
  const { stream, requests } = after;
  let place = after;
  for (;;) {
    const read = await log.read(key, stream, place, eventsPerRead);
    if (reply.isDone) return 'complete';
    if (read.outcome !== 'ok' || read.broken) return place;
    const events = eventsUpTo(read.events, bytesPerWrite);
    const newest = events.at(-1);
    // Nothing new. One that was delivered whole is answered by the owner's rules, or, without one, ends here.
    if (newest === undefined && !(read.ended && reply.isStream)) {
      if (!read.ended) return place;
      reply.nothing();
      return 'complete';
    }
    const sink = reply.stream();
    if (primes && !reply.isContinued) {
      // The retry of this one replaces that of an instance that stopped, and a cut before the first event harms nothing.
      sink.write(encodeEvents([{ ...after, stream, data: noData }], retryMs, requests));
      reply.isContinued = true;
    }
    if (newest !== undefined) {
      place = { ...after, epoch: newest.epoch, seq: newest.seq };
      const keepsUp = sink.write(
        encodeEvents(events, retryMs, requests),
        formatEventId(stream, { epoch: place.epoch, seq: place.seq }),
      );
      onWritten?.(events.length);
      reply.isContinued = true;
      if (!keepsUp && !(await reply.drains(slowReaderMs))) {
        sink.cut();
        return 'complete';
      }
    }
    if (read.atTail && events.length === read.events.length) {
      if (!read.ended) return place;
      sink.end();
      return 'complete';
    }
  }
}
