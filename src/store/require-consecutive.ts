import type { NewEvent } from './event-log.ts';

/**
 * Throws for a batch that is not behind the tail, or has a hole in itself: a fault of the caller. What is missing before it
 * was lost by the store and is no longer held by the caller; the chain of each stream tells it to resumes.
 */
export function requireConsecutive(expectedTail: number, events: readonly NewEvent[]): void {
  const [first] = events;
  if (first !== undefined && first.seq <= expectedTail)
    throw new RangeError(`event ${first.seq} is not behind the tail`);
  for (let index = 1; index < events.length; index += 1) {
    const expected = (first as NewEvent).seq + index;
    const { seq } = events[index] as NewEvent;
    if (seq !== expected) throw new RangeError(`event ${seq} stands where ${expected} belongs`);
  }
}
