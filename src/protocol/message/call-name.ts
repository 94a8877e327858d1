import { type Message, memberRange, memberValue } from './message.ts';

/** Calls whose `params.name` is a name. */
const named: ReadonlySet<string | undefined> = new Set(['tools/call', 'prompts/get']);

/** A client decides how long what it sends here is; methods and names beyond this are cut (P8). */
export const maxNameLength = 128;

/**
 * The tool or prompt that a request names; undefined if it names none. The URI of a resource is no name: with what its template
 * takes from a client it can be content.
 */
export function readCallName(request: Message): string | undefined {
  const place = named.has(request.method) ? memberRange(request, 'params', 'name') : undefined;
  // Nothing is built of what is too long for a name: six characters are the longest escape of one.
  if (place === undefined || place.end - place.start > 6 * maxNameLength + 2) return undefined;
  const name = memberValue(request, 'params', 'name');
  return typeof name === 'string' ? name.slice(0, maxNameLength) : undefined;
}
