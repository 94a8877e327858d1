import type { NewEvent, PendingCall, StoredEvent } from '../../store/event-log.ts';

/** An event of an owner, before and after it is stored. */
export type OwnEvent = NewEvent &
  StoredEvent & {
    /** The pending call that the event settled, without its text. Set when the event is stored. */
    settled?: PendingCall;
  };

/** Events of one append, in order. */
export type Batch = readonly OwnEvent[];

/**
 * How many events are retained, because a failover of the store can lose confirmed events. Retained events are appended
 * again. Older lost events are a gap in the chain, which resumes report.
 */
const maxRetainedEvents = 128;
const maxRetainedBytes = 256 * 1024;

/** The newest events, within the limits of what is retained. */
export function retainedOf(events: Batch): Batch {
  let bytes = 0;
  for (let from = events.length; from > 0; from -= 1) {
    bytes += (events[from - 1] as OwnEvent).data.length;
    if (events.length - from + 1 > maxRetainedEvents || bytes > maxRetainedBytes) return events.slice(from);
  }
  return events;
}
