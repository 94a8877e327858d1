import { faultMessage, type Reason } from '../protocol/faults.ts';
import { type EventId, readRequestIds } from '../protocol/wire/event-id.ts';
import { createFinalBatch, type EventBatch } from './event-batch.ts';

/**
 * The fault for the requests of a stream, by the reason why the stream cannot be resumed. The reasons are those that
 * never end, or last longer than a client should wait (P3).
 */
const requestFaults: ReadonlyMap<Reason, Reason> = new Map([
  ['unknown_session', 'session_ended'],
  ['unknown_event_id', 'history_lost'],
  ['bad_event_id', 'history_lost'],
  ['takeover_paused', 'outcome_unknown'],
]);

/**
 * Creates the end of a stream that can never be resumed: an error for each request that the client's event id names.
 * The official SDKs (v1 and v2) do not end a request because of a GET's status. After a 404 a request would wait for
 * its own time-out (P3).
 * @returns undefined if the stream may be resumed later, or the event id names no request
 */
export function finalEventsFor(reason: Reason, after: EventId): EventBatch | undefined {
  const fault = requestFaults.get(reason);
  const texts = fault === undefined ? [] : readRequestIds(after).map((id) => faultMessage(fault, id));
  return texts.length === 0 ? undefined : createFinalBatch(texts, after);
}
