import type { NewEvent } from './event-log.ts';

/**
 * Throws for a batch that does not lie after the tail or that has a hole: both are faults of the caller.
 *
 * A hole between the tail and the batch is allowed: the store lost those events and the caller no longer holds them. A
 * resume notices the hole by the chain of its stream.
 */
export function requireConsecutive(expectedTail: number, events: readonly NewEvent[]): void {
  const [first] = events;
  if (first === undefined) return;
  let expected = first.seq;
  if (expected <= expectedTail) throw new RangeError(`event ${expected} is not behind the tail`);
  for (const { seq } of events) {
    if (seq !== expected) throw new RangeError(`event ${seq} stands where ${expected} belongs`);
    expected += 1;
  }
}
