import { putMembers, withoutMember } from '../../message/edit-members.ts';
import { type Message, memberRange, memberValue, protocolVersionKey } from '../../message/message.ts';
import { clientCapabilitiesKey, clientInfoKey, logLevelKey } from '../../modern/envelope.ts';
import type { LogLevel } from '../../modern/log-levels.ts';
import { legacyRevisions } from '../../revisions.ts';

/** What a client of the legacy era said of itself in `initialize`, as a server of the modern era is told with each request. */
export interface LegacyClient {
  /** The revision of its session. */
  readonly revision: string;
  /** JSON text; undefined if it did not say who it is. */
  readonly infoText: string | undefined;
  /** JSON text. */
  readonly capabilitiesText: string;
}

/** Tasks of the one era are not those of the other (2026-07-28, changelog): neither side is told that there are any. */
export const tasksExtension = 'io.modelcontextprotocol/tasks';

/**
 * Reads a client's `initialize`. Its session has the revision that it asked for if that is served, else the newest of the
 * legacy era (2025-11-25, basic/lifecycle, "Version Negotiation").
 */
export function readLegacyClient(initialize: Message): LegacyClient {
  const asked = memberValue(initialize, 'params', 'protocolVersion');
  const newest = legacyRevisions.at(-1) as string;
  return {
    revision: legacyRevisions.find((revision) => revision === asked) ?? newest,
    infoText: objectText(initialize, 'clientInfo')?.toString(),
    capabilitiesText: withoutTasks(objectText(initialize, 'capabilities') ?? Buffer.from('{}')).toString(),
  };
}

/** Capabilities of either side, as JSON text, without those of tasks. */
export const withoutTasks = (capabilities: Buffer): Buffer =>
  withoutMember(withoutMember(capabilities, ['tasks']), ['extensions', tasksExtension]);

function objectText(initialize: Message, key: string): Buffer | undefined {
  const place = memberRange(initialize, 'params', key);
  const text = place && initialize.text.subarray(place.start, place.end);
  return text?.[0] === 0x7b ? text : undefined;
}

/**
 * A client's request as one of the modern era (2026-07-28, basic, "Per-request protocol fields"): with the client's own
 * `_meta`, and what a request of this era must say of itself.
 * @param logLevel the least level of log messages that the client wants; undefined if it wants none
 */
export function withEnvelope(
  request: Message,
  { infoText, capabilitiesText }: LegacyClient,
  protocolVersion: string,
  logLevel: LogLevel | undefined,
): Buffer {
  return putMembers(request, 'meta', [
    [protocolVersionKey, JSON.stringify(protocolVersion)],
    ...(infoText === undefined ? [] : ([[clientInfoKey, infoText]] as const)),
    [clientCapabilitiesKey, capabilitiesText],
    ...(logLevel === undefined ? [] : ([[logLevelKey, JSON.stringify(logLevel)]] as const)),
  ]);
}
