import type { EventRun, NewEvent, PendingCall, StoredEvent } from '../../store/event-log.ts';
import { bytesOf, countOf, firstSeqOf, sliceRun } from '../../store/event-run.ts';

/** An event of an owner. */
type OwnEvent = NewEvent &
  StoredEvent & {
    /** The pending call that the event settled, without its text. Set when the event is stored. */
    settled?: PendingCall;
  };

/** An event of an owner, or a run of them, before and after it is stored. */
export type Entry = OwnEvent | EventRun;

/** Events of one append, in order. */
export type Batch = readonly Entry[];

/**
 * How many events are retained, because a failover of the store can lose confirmed events. Retained events are appended
 * again. Older lost events are a gap in the chain, which resumes report.
 */
const maxRetainedEvents = 128;
const maxRetainedBytes = 256 * 1024;

/** The events behind this number. */
export function entriesAfter(entries: Batch, seq: number): Batch {
  return entries
    .filter((entry) => entry.seq > seq)
    .map((entry) => (entry.texts === undefined ? entry : sliceRun(entry, Math.max(0, seq - firstSeqOf(entry) + 1))));
}

/** The newest events, within the limits of what is retained. */
export function retainedOf(entries: Batch): Batch {
  let count = 0;
  let bytes = 0;
  for (let from = entries.length; from > 0; from -= 1) {
    const entry = entries[from - 1] as Entry;
    count += countOf(entry);
    bytes += bytesOf(entry);
    if (count <= maxRetainedEvents && bytes <= maxRetainedBytes) continue;
    if (entry.texts === undefined) return entries.slice(from);
    const { texts } = entry;
    const excess = Math.max(count - maxRetainedEvents, texts.countOfBytes(bytes - maxRetainedBytes));
    return excess < texts.count ? [sliceRun(entry, excess), ...entries.slice(from)] : entries.slice(from);
  }
  return entries;
}
