import { faultMessage, type Reason } from '../protocol/faults.ts';
import { type EventId, readRequestIds } from '../protocol/wire/event-id.ts';
import { encodeFinalEvents } from '../protocol/wire/sse.ts';

/**
 * Why a stream can never be resumed, or not for so long that its client is not to wait (P3); and what the requests that it
 * answers are told.
 */
const lasting: ReadonlyMap<Reason, Reason> = new Map([
  ['unknown_session', 'session_ended'],
  ['unknown_event_id', 'history_lost'],
  ['bad_event_id', 'history_lost'],
  ['takeover_paused', 'outcome_unknown'],
]);

/**
 * The end of a stream that can never be resumed: an error for each request that the event id of its client names. The official
 * SDKs (v1 and v2) take no status of a GET for the end of a request: after a 404 it waits for its own time-out (P3).
 * @returns undefined if the stream may be resumed later, or the event id names no request
 */
export function finalEventsFor(reason: Reason, after: EventId): Buffer | undefined {
  const said = lasting.get(reason);
  const texts = said === undefined ? [] : readRequestIds(after).map((id) => faultMessage(said, id));
  return texts.length === 0 ? undefined : encodeFinalEvents(texts, after);
}
