import { type Message, memberValue, protocolVersionKey } from '../../protocol/message/message.ts';
import { legacyRevisions } from '../../protocol/revisions.ts';

/**
 * What an endpoint of the legacy era alone says of a modern message beside `modern_not_served` (2026-07-28, basic/versioning):
 * which revisions it serves, and which one was asked for.
 * @param header `MCP-Protocol-Version`, where there are headers
 */
export function modernNotServedData(
  message: Message,
  header?: string,
): { supported: readonly string[]; requested?: string } {
  const named = memberValue(message, 'meta', protocolVersionKey) ?? header;
  return { supported: legacyRevisions, ...(typeof named === 'string' && { requested: named }) };
}
