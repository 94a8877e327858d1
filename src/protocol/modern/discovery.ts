import { type Message, memberValue } from '../message.ts';
import { legacyRevisions, modernRevisions } from '../revisions.ts';
import { findPlace, replaceParts } from '../splice.ts';

/** What a server's answer to `server/discover` says of its era (2026-07-28, basic/transports/stdio, "Backward Compatibility"). */
export type Discovery =
  | {
      readonly era: 'modern';
      /** The revisions that both the server and the gateway serve. */
      readonly revisions: readonly string[];
      /** The capabilities that the server declares; undefined if it did not say. */
      readonly capabilities: ReadonlySet<string> | undefined;
    }
  | { readonly era: 'legacy' };

const unsupportedVersion = -32022;

/** Reads a response to `server/discover`: any error but the one that names the server's revisions is a legacy server's. */
export function readDiscovery(response: Message): Discovery {
  const versions = listOf(response);
  if (versions === undefined) return { era: 'legacy' };
  const revisions = modernRevisions.filter((revision) => versions.includes(revision));
  return { era: 'modern', revisions, capabilities: capabilitiesOf(response) };
}

function capabilitiesOf(response: Message): ReadonlySet<string> | undefined {
  const result = memberValue(response, 'message', 'result');
  if (!isObject(result)) return undefined;
  return new Set(isObject(result['capabilities']) ? Object.keys(result['capabilities']) : []);
}

function listOf(response: Message): readonly unknown[] | undefined {
  const result = memberValue(response, 'message', 'result');
  if (isObject(result)) return Array.isArray(result['supportedVersions']) ? result['supportedVersions'] : undefined;
  const error = memberValue(response, 'message', 'error');
  if (!isObject(error) || error['code'] !== unsupportedVersion || !isObject(error['data'])) return undefined;
  const { supported } = error['data'];
  // A legacy server can know the code as well: it has to name a modern revision.
  return Array.isArray(supported) && supported.some((version) => !isLegacy(version)) ? supported : undefined;
}

const isLegacy = (version: unknown): boolean => (legacyRevisions as readonly unknown[]).includes(version);

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/**
 * A response to `server/discover` that names no revision which the gateway does not serve: a client could not use it. The
 * text of any other response is the same.
 */
export function withServedVersions(text: Buffer): Buffer {
  const place = findPlace(text, ['result', 'supportedVersions']);
  if (typeof place !== 'object') return text;
  const versions: unknown = JSON.parse(text.toString('utf8', place.start, place.end));
  if (!Array.isArray(versions)) return text;
  const served = versions.filter((version) => isLegacy(version) || isModernServed(version));
  return served.length === versions.length ? text : replaceParts(text, [{ ...place, by: JSON.stringify(served) }]);
}

const isModernServed = (version: unknown): boolean => (modernRevisions as readonly unknown[]).includes(version);
