import type { LogPosition } from '../../protocol/wire/event-id.ts';
import type { EventLog, ReadOutcome } from '../../store/event-log.ts';
import type { EventWriter } from './event-writer.ts';

/**
 * The log, for an owner's streams. A store that has lost what it had confirmed to `writer`, and was not told it again yet, is
 * told it before it is believed: a client that comes back in that moment would else hear that its event was never there (P4).
 */
export function repairingLog(log: EventLog, epoch: number, writer: () => EventWriter): EventLog {
  const isOfThis = (after: LogPosition): boolean =>
    after.epoch === epoch && after.seq > 0 && after.seq <= writer().stored.tail;
  // Of an earlier owner's stream only the newest event is known here. The log has to know as much.
  const isLost = (outcome: ReadOutcome['outcome'], stream: number, after: LogPosition | undefined): boolean =>
    after !== undefined &&
    (isOfThis(after) || (outcome === 'unknown_stream' && after.epoch < epoch && writer().stored.log.tails.has(stream)));
  return {
    append: (key, of, expectedTail, events) => log.append(key, of, expectedTail, events),
    async read(key, stream, after, limit) {
      const read = await log.read(key, stream, after, limit);
      if (read.outcome === 'ok' ? !read.broken : !isLost(read.outcome, stream, after)) return read;
      writer().check();
      await writer().appended(); // the append that was under way, perhaps
      await writer().appended();
      return log.read(key, stream, after, limit);
    },
  };
}
