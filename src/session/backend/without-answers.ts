import { readOneMessage } from '../record/adoption.ts';

/** Lines of a server without its answers to these requests, which are nobody else's; and which it has yet to answer. */
export function removeResponses(
  lines: readonly Buffer[],
  ids: ReadonlySet<string>,
): { readonly others: readonly Buffer[]; readonly left: ReadonlySet<string> } {
  const left = new Set(ids);
  const others = lines.filter((line) => {
    const message = readOneMessage(line);
    return !(message?.kind === 'response' && typeof message.id === 'string' && left.delete(message.id));
  });
  return { others, left };
}
