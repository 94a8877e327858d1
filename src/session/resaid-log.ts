import type { Position } from '../protocol/event-id.ts';
import type { EventLog } from '../store/event-log.ts';
import type { EventWriter } from './event-writer.ts';

/**
 * The log, for an owner's streams. A store that has lost what it had confirmed to `writer`, and was not told it again yet, is
 * told it before it is believed: a client that comes back in that moment would else hear that its event was never there (P4).
 */
export function resaidLog(log: EventLog, epoch: number, writer: () => EventWriter): EventLog {
  const isOfThis = (after: Position | undefined): boolean =>
    after?.epoch === epoch && after.seq > 0 && after.seq <= writer().stored.tail;
  return {
    append: (key, of, expectedTail, events) => log.append(key, of, expectedTail, events),
    async read(key, stream, after, limit) {
      const read = await log.read(key, stream, after, limit);
      if (read.outcome === 'ok' ? !read.broken : !isOfThis(after)) return read;
      writer().check();
      await writer().appended(); // the append that was under way, perhaps
      await writer().appended();
      return log.read(key, stream, after, limit);
    },
  };
}
