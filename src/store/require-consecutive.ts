import type { NewEvent } from './event-log.ts';

/**
 * Throws for a batch that does not lie after the tail or that has a hole: both are faults of the caller.
 *
 * A hole between the tail and the batch is allowed: the store lost those events and the caller no longer holds them. A
 * resume notices the hole by the chain of its stream.
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
