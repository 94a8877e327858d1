import type { RequestId } from '../faults.ts';
import type { Message } from '../message/message.ts';

/** The same id as the other JSON type: "7" for 7, and 7 for "7", "7.0" or " 7". Undefined if there is none. */
function otherType(id: RequestId): RequestId | undefined {
  if (typeof id === 'number') return String(id);
  const number = Number(id);
  return Number.isSafeInteger(number) && id.trim() !== '' ? number : undefined;
}

/**
 * The open request that an answer with this id belongs to: the one with the id, or else the one with the same id as the
 * other JSON type. Some servers change the type, and the SDKs accept that.
 */
export function openRequest(id: RequestId, open: { has(id: RequestId): boolean }): RequestId | undefined {
  if (open.has(id)) return id;
  const other = otherType(id);
  return other !== undefined && open.has(other) ? other : undefined;
}

/** Returns those of the open requests that the responses among these messages answer. */
export const answeredIn = (messages: readonly Message[], open: { has(id: RequestId): boolean }): readonly RequestId[] =>
  messages.flatMap(({ kind, id }) => (kind === 'response' && id != null ? (openRequest(id, open) ?? []) : []));

/** Returns the id of a message that is a request, in a list; an empty list for any other message. */
export const requestIdsOf = ({ kind, id }: Message): readonly RequestId[] =>
  kind === 'request' && id != null ? [id] : [];
