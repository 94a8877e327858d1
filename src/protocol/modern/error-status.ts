import { type Message, memberValue } from '../message.ts';

/**
 * The HTTP status of a server's response, where it is the first that a client gets (2026-07-28,
 * basic/transports/streamable-http). Only these errors have one of their own; all others are answers like any result.
 */
export function statusOf(response: Message): number {
  const error = memberValue(response, 'message', 'error');
  if (typeof error !== 'object' || error === null || !('code' in error)) return 200;
  return statuses.get(error.code) ?? 200;
}

const statuses: ReadonlyMap<unknown, number> = new Map([
  [-32601, 404], // no such method
  [-32020, 400], // HeaderMismatch
  [-32021, 400], // MissingRequiredClientCapability
  [-32022, 400], // UnsupportedProtocolVersion
]);
