import type { RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';

/**
 * Removes the server's answers to these requests from its messages. Also returns the requests that are still
 * unanswered.
 */
export function removeResponses(
  messages: readonly Message[],
  ids: ReadonlySet<RequestId>,
): { readonly others: readonly Message[]; readonly unanswered: ReadonlySet<RequestId> } {
  const unanswered = new Set(ids);
  const others = messages.filter(({ kind, id }) => !(kind === 'response' && id != null && unanswered.delete(id)));
  return { others, unanswered };
}
