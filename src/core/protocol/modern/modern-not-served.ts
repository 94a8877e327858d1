import { legacyRevisions } from '../known-revisions.ts';
import { type Message, memberValue, protocolVersionKey } from '../message/message.ts';

/**
 * Returns the data of `modern_not_served`, with which a legacy-only endpoint refuses a modern message (2026-07-28,
 * basic/versioning): the revisions served, and the one requested.
 * @param header the `MCP-Protocol-Version` header, where there are headers
 */
export function modernNotServedData(
  message: Message,
  header?: string,
): { supported: readonly string[]; requested?: string } {
  const named = memberValue(message, 'meta', protocolVersionKey) ?? header;
  return { supported: legacyRevisions, ...(typeof named === 'string' && { requested: named }) };
}
