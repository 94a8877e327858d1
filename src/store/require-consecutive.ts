import type { NewEvent } from './event-log.ts';

/** Throws for a batch with a hole: a fault of the caller, and stored it would be a silent one in every later resume. */
export function requireConsecutive(expectedTail: number, events: readonly NewEvent[]): void {
  for (const [index, { seq }] of events.entries()) {
    if (seq !== expectedTail + 1 + index) {
      throw new RangeError(`event ${seq} does not follow ${expectedTail + index} in the log`);
    }
  }
}
