import type { LogPosition } from '../../protocol/wire/event-id.ts';
import type { EventLog, ReadOutcome } from '../../store/event-log.ts';
import { type EventWriter, maxSentAppends } from './event-writer.ts';

/**
 * The log for an owner's streams. A store may have lost events that it had confirmed to `writer`. Before such a loss is
 * believed, the writer appends the events again. Otherwise a resuming client would be told that its event never existed
 * (P4).
 */
export function repairingLog(log: EventLog, epoch: number, writer: () => EventWriter): EventLog {
  const isOwnEvent = (after: LogPosition): boolean =>
    after.epoch === epoch && after.seq > 0 && after.seq <= writer().stored.tail;
  // For an earlier owner's stream only the newest event is known here. The log must know at least that one.
  const isLost = (outcome: ReadOutcome['outcome'], stream: number, after: LogPosition | undefined): boolean =>
    after !== undefined &&
    (isOwnEvent(after) ||
      (outcome === 'unknown_stream' && after.epoch < epoch && writer().stored.log.tails.has(stream)));
  return {
    append: (key, batchEpoch, expectedTail, events) => log.append(key, batchEpoch, expectedTail, events),
    async read(key, stream, after, limit) {
      const read = await log.read(key, stream, after, limit);
      if (read.outcome === 'ok' ? !read.broken : !isLost(read.outcome, stream, after)) return read;
      writer().check();
      // The appends that may have been under way, and the one behind them.
      for (let ended = 0; ended <= maxSentAppends; ended += 1) await writer().appended();
      return log.read(key, stream, after, limit);
    },
  };
}
