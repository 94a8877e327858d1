// src/features/eras/translate/legacy-on-modern: messages of legacy clients for modern servers, and the way back.

import { objectAt } from '../../../../core/protocol/json.ts';
import { isLegacyRevision, newestLegacy } from '../../../../core/protocol/known-revisions.ts';
import { changedMessage } from '../../../../core/protocol/message/changed-message.ts';
import { putMembers, withoutMember } from '../../../../core/protocol/message/edit-members.ts';
import { type Message, memberValue, protocolVersionKey } from '../../../../core/protocol/message/message.ts';
import { extensions } from '../../../../core/protocol/methods/extensions.ts';
import { clientCapabilitiesKey, clientInfoKey, logLevelKey } from '../../../../core/protocol/modern/envelope.ts';
import type { LogLevel } from '../../../../core/protocol/modern/log-levels.ts';

/** The description of a legacy client in its `initialize`, which a modern server gets with each request. */
export interface LegacyClient {
  /** The revision of its session. */
  readonly revision: string;
  /** JSON text; undefined if the client did not identify itself. */
  readonly infoText: string | undefined;
  /** JSON text. */
  readonly capabilitiesText: string;
}

/**
 * Reads a client's `initialize`. Its session gets the requested revision if the gateway serves it, otherwise the newest
 * of the legacy era (2025-11-25, basic/lifecycle, "Version Negotiation").
 */
export function readLegacyClient(initialize: Message): LegacyClient {
  const requested = memberValue(initialize, 'params', 'protocolVersion');
  const capabilities = objectAt(initialize.text, ['params', 'capabilities']) ?? Buffer.from('{}');
  return {
    revision: isLegacyRevision(requested) ? (requested as string) : newestLegacy.name,
    infoText: objectAt(initialize.text, ['params', 'clientInfo'])?.toString(),
    capabilitiesText: withoutUntranslated(capabilities).toString(),
  };
}

/**
 * Removes from the capabilities of either side, as JSON text, those that each era has in its own way. Neither side learns
 * of them, such as of tasks (2026-07-28, changelog).
 */
export const withoutUntranslated = (capabilities: Buffer): Buffer =>
  untranslatedPaths.reduce(withoutMember, capabilities);

const untranslatedPaths = extensions
  .filter(({ isTranslated }) => !isTranslated)
  .flatMap(({ id, legacyCapability }) => [
    ...(legacyCapability === undefined ? [] : [[legacyCapability]]),
    ['extensions', id],
  ]);

/**
 * Converts a client's request to the modern era (2026-07-28, basic, "Per-request protocol fields"). The client's own
 * `_meta` stays, and the required members are added.
 * @param logLevel the least severe level of log messages that the client requests; undefined if it requests none
 */
export function withEnvelope(
  request: Message,
  { infoText, capabilitiesText }: LegacyClient,
  protocolVersion: string,
  logLevel: LogLevel | undefined,
): Message {
  const text = putMembers(request, 'meta', [
    [protocolVersionKey, JSON.stringify(protocolVersion)],
    ...(infoText === undefined ? [] : ([[clientInfoKey, infoText]] as const)),
    [clientCapabilitiesKey, capabilitiesText],
    ...(logLevel === undefined ? [] : ([[logLevelKey, JSON.stringify(logLevel)]] as const)),
  ]);
  return changedMessage(request, text, { isModern: true });
}
