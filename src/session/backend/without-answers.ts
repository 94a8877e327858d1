import { readOneMessage } from '../record/adoption.ts';

/**
 * Removes the server's answers to these requests from its lines. Also returns the requests that are still unanswered.
 */
export function removeResponses(
  lines: readonly Buffer[],
  ids: ReadonlySet<string>,
): { readonly others: readonly Buffer[]; readonly unanswered: ReadonlySet<string> } {
  const unanswered = new Set(ids);
  const others = lines.filter((line) => {
    const message = readOneMessage(line);
    return !(message?.kind === 'response' && typeof message.id === 'string' && unanswered.delete(message.id));
  });
  return { others, unanswered };
}
