// The rules that every implementation of `EventLog` follows.
import { compareLogPositions, type LogPosition } from '../protocol/wire/event-id.ts';
import type { NewEvent, ReadOutcome, StoredEvent } from './event-log.ts';
import type { StreamTail } from './session-records.ts';

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

/**
 * Selects the kept events of one stream after a position, at most `limit` of them. The list ends before an event whose
 * predecessor was never stored. The next read starts there and reports `broken`, which a read can report only of its
 * start.
 */
export function selectEvents(
  kept: Iterable<StoredEvent>,
  stream: number,
  after: LogPosition | undefined,
  limit: number,
): StoredEvent[] {
  const found: StoredEvent[] = [];
  for (const event of kept) {
    if (event.stream !== stream || (after !== undefined && compareLogPositions(event, after) <= 0)) continue;
    if (found.length > 0 && isBreak(found.at(-1), event)) break;
    found.push(event);
    if (found.length >= limit) break;
  }
  return found;
}

/** The result of a read that has selected these events of a stream after a position. */
export function readOutcomeOf(
  events: readonly StoredEvent[],
  after: LogPosition | undefined,
  { newest, ended }: StreamTail,
): ReadOutcome {
  const [first] = events;
  // If no event is left, the log has nothing more to read, whatever was lost.
  const atTail = first === undefined || isSamePosition(events.at(-1), newest);
  const broken = first === undefined ? !isSamePosition(after, newest) : isBreak(after, first);
  return { outcome: 'ok', events, broken, atTail, ended, newest };
}

/** The result of a read of a stream that has ended, and whose events are all evicted. */
export const forgottenStream: ReadOutcome = {
  outcome: 'ok',
  events: [],
  broken: true,
  atTail: true,
  ended: true,
  newest: undefined,
};

/** True if the stream had an event between `after` and the event whose predecessor is `previous`. */
const isBreak = (after: LogPosition | undefined, { previous }: StoredEvent): boolean =>
  previous !== undefined && (after === undefined || compareLogPositions(previous, after) > 0);

const isSamePosition = (a: LogPosition | undefined, b: LogPosition): boolean =>
  a !== undefined && compareLogPositions(a, b) === 0;
