import type { NewEntry } from './event-log.ts';
import { countOf, firstSeqOf } from './event-run.ts';

/**
 * Throws for a batch that does not lie after the tail or that has a hole: both are faults of the caller.
 *
 * A hole between the tail and the batch is allowed: the store lost those events and the caller no longer holds them. A
 * resume notices the hole by the chain of its stream.
 */
export function requireConsecutive(expectedTail: number, events: readonly NewEntry[]): void {
  const [first] = events;
  if (first === undefined) return;
  let expected = firstSeqOf(first);
  if (expected <= expectedTail) throw new RangeError(`event ${expected} is not behind the tail`);
  for (const event of events) {
    const seq = firstSeqOf(event);
    if (seq !== expected) throw new RangeError(`event ${seq} stands where ${expected} belongs`);
    expected += countOf(event);
  }
}
