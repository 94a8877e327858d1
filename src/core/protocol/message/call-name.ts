import { methodOf } from '../methods/methods.ts';
import { type Message, memberRange, memberValue } from './message.ts';

/** Longer methods and names are truncated: a client decides how long they are (P8). */
export const maxNameLength = 128;

/**
 * The tool or prompt that a request names; undefined if it names none. The URI of a resource does not count: the
 * variables of its template can contain a client's content.
 */
export function readCallName(request: Message): string | undefined {
  const range = methodOf(request.method).names === undefined ? undefined : memberRange(request, 'params', 'name');
  // Longer values are not built: the longest escape of one character has six characters.
  if (range === undefined || range.end - range.start > 6 * maxNameLength + 2) return undefined;
  const name = memberValue(request, 'params', 'name');
  return typeof name === 'string' ? name.slice(0, maxNameLength) : undefined;
}
