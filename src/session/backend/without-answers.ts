import type { Message } from '../../protocol/message/message.ts';

/**
 * Removes the server's answers to these requests from its messages. Also returns the requests that are still
 * unanswered.
 */
export function removeResponses(
  messages: readonly Message[],
  ids: ReadonlySet<string>,
): { readonly others: readonly Message[]; readonly unanswered: ReadonlySet<string> } {
  const unanswered = new Set(ids);
  const others = messages.filter(
    ({ kind, id }) => !(kind === 'response' && typeof id === 'string' && unanswered.delete(id)),
  );
  return { others, unanswered };
}
