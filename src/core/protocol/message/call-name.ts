import { methodOf } from '../methods/methods.ts';
import { isAsciiText } from './decoded-members.ts';
import { type Message, memberRange, memberValue } from './message.ts';

/** Longer methods and names are truncated: a client decides how long they are (P8). */
export const maxNameLength = 128;

/** The name that was last read: clients call the same tools again and again. */
let latestName = '';

/**
 * The tool or prompt that a request names; undefined if it names none. The URI of a resource does not count: the
 * variables of its template can contain a client's content.
 */
export function readCallName(request: Message): string | undefined {
  const range = methodOf(request.method).names === undefined ? undefined : memberRange(request, 'params', 'name');
  // Longer values are not built: the longest escape of one character has six characters.
  if (range === undefined || range.end - range.start > 6 * maxNameLength + 2) return undefined;
  if (request.text[range.start] !== 0x22) return undefined;
  if (isAsciiText(request.text, range.start + 1, range.end - 1, latestName)) return latestName;
  const name = (memberValue(request, 'params', 'name') as string).slice(0, maxNameLength);
  if (name.length === range.end - range.start - 2) latestName = name; // one byte for each character, and no escapes
  return name;
}
