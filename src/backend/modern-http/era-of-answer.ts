import { errorCodeIn } from '../../protocol/json/splice.ts';
import { readResponse } from '../../protocol/message/message.ts';
import { readDiscovery } from '../../protocol/modern/discovery.ts';
import type { ModernPostOutcome } from './modern-post.ts';

/**
 * What answers over HTTP say of the era of a server (2026-07-28, basic/transports/streamable-http, "Backward
 * Compatibility").
 */

/** Statuses that say nothing of it: who asks is not let in, or the server, or what stands before it, is not well. */
export const isUnrelatedToEra = (status: number): boolean =>
  [401, 403, 407, 408, 425, 429].includes(status) || status >= 500;

/** Statuses with which a server refuses what it does not know. */
export const isRefusal = (status: number): boolean => status >= 400 && !isUnrelatedToEra(status);

/** Codes of errors that servers of the legacy era have where a modern one has others. */
const legacyCodes: ReadonlySet<unknown> = new Set([-32000, -32001]);

/** True if a request was refused as by a server of the legacy era. It could be for another reason: the server is to be asked. */
export function looksLikeLegacyRefusal(outcome: ModernPostOutcome): boolean {
  if (!isRefusal(outcome.status ?? 0)) return false;
  if (!outcome.ok) return true;
  return legacyCodes.has(errorCodeIn(outcome.response));
}

/** True if the answer to `server/discover` is that of a server of the legacy era. */
export function isLegacyDiscovery(outcome: ModernPostOutcome): boolean {
  if (!outcome.ok) return isRefusal(outcome.status ?? 0);
  const response = readResponse(outcome.response);
  return !isUnrelatedToEra(outcome.status) && response !== undefined && readDiscovery(response).era === 'legacy';
}
