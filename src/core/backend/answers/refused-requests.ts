import type { Reason } from '../../protocol/faults.ts';
import { createOverloaded } from '../../protocol/message/message.ts';
import type { BackendEvents, RequestIds } from '../backend.ts';

/** How a server at a URL left requests without an answer. */
export interface RefusedRequests {
  readonly reason: Reason;
  /** See `BackendEvents.onUnanswered`. */
  readonly isFinal?: boolean;
  /** The server refused them for now, and named this time: the gateway does not wait so long, but tells their clients. */
  readonly retryAfterS?: number | undefined;
}

/** Reports requests that a server at a URL does not answer (docs/decisions/0016). */
export function reportRefused(
  events: Pick<BackendEvents, 'onMessages' | 'onUnanswered'>,
  ids: RequestIds,
  { reason, isFinal, retryAfterS }: RefusedRequests,
): void {
  if (retryAfterS === undefined) return events.onUnanswered(ids, reason, isFinal);
  const errors = ids.map((id) => createOverloaded(id, retryAfterS));
  events.onMessages(errors, ids);
}
