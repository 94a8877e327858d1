import { errorCodeIn } from '../../../core/protocol/json.ts';
import { readDiscovery } from '../../../core/protocol/modern/discovery.ts';
import type { ModernPostOutcome } from './modern-post.ts';

/**
 * Tells the era of a server from its answers over HTTP (2026-07-28, basic/transports/streamable-http, "Backward
 * Compatibility").
 */

/**
 * True for a status that says nothing about the era: the client is not admitted, or the server, or a proxy before it,
 * is not well.
 */
export const isUnrelatedToEra = (status: number): boolean =>
  [401, 403, 407, 408, 425, 429].includes(status) || status >= 500;

/** True for a status with which a server refuses an unknown request. */
export const isRefusal = (status: number): boolean => status >= 400 && !isUnrelatedToEra(status);

/** Error codes of legacy servers for which a modern server has others. */
const legacyCodes: ReadonlySet<unknown> = new Set([-32000, -32001]);

/**
 * True if a request was refused as a legacy server would. There may be another reason, so the server must be probed.
 */
export function looksLikeLegacyRefusal(outcome: ModernPostOutcome): boolean {
  if (!isRefusal(outcome.status ?? 0)) return false;
  if (!outcome.ok) return true;
  return legacyCodes.has(errorCodeIn(outcome.response.text));
}

/** True if the answer to `server/discover` is that of a server of the legacy era. */
export function isLegacyDiscovery(outcome: ModernPostOutcome): boolean {
  if (!outcome.ok) return isRefusal(outcome.status ?? 0);
  return !isUnrelatedToEra(outcome.status) && readDiscovery(outcome.response).era === 'legacy';
}
