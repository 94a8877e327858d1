import type { RequestId } from './faults.ts';

/** The same id as the other JSON type: "7" for 7. Undefined if there is none. */
export function otherType(id: RequestId): RequestId | undefined {
  if (typeof id === 'number') return String(id);
  const number = Number(id);
  return Number.isSafeInteger(number) && String(number) === id ? number : undefined;
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
