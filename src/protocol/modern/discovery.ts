import { scanObject } from '../json/scan.ts';
import { errorCodeIn, findRange, replaceParts, valueAt } from '../json/splice.ts';
import type { Message } from '../message/message.ts';
import { legacyRevisions, modernRevisions } from '../revisions.ts';

/** What a server's answer to `server/discover` says of its era (2026-07-28, basic/transports/stdio, "Backward Compatibility"). */
export type Discovery =
  | {
      readonly era: 'modern';
      /** The revisions that both the server and the gateway serve. */
      readonly revisions: readonly string[];
      /** All that the server names: they are of its text. */
      readonly supported: readonly unknown[];
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
  return { era: 'modern', revisions, supported: versions, capabilities: capabilitiesOf(response) };
}

function capabilitiesOf(response: Message): ReadonlySet<string> | undefined {
  const result = valueAt(response.text, ['result']);
  const declared = result && valueAt(result, ['capabilities']);
  const members = declared && scanObject(declared);
  return result && new Set(typeof members === 'object' ? members.keys : []);
}

function listOf({ text, isError }: Message): readonly unknown[] | undefined {
  if (!isError) return versionsAt(text, ['result', 'supportedVersions']);
  if (errorCodeIn(text) !== unsupportedVersion) return undefined;
  const supported = versionsAt(text, ['error', 'data', 'supported']);
  // A legacy server can know the code as well: it has to name a modern revision.
  return supported?.some((version) => !isLegacy(version)) ? supported : undefined;
}

/** A list of more bytes than this names no revisions (P8). */
const maxListBytes = 64 * 1024;

/** A list of revisions in a text; undefined if there is none. */
export function versionsAt(text: Buffer, path: readonly string[]): readonly unknown[] | undefined {
  const list = valueAt(text, path);
  if (list === undefined || list.length > maxListBytes) return undefined;
  const versions: unknown = JSON.parse(list.toString());
  return Array.isArray(versions) ? versions : undefined;
}

const isLegacy = (version: unknown): boolean => (legacyRevisions as readonly unknown[]).includes(version);

/**
 * A response to `server/discover` that names no revision which the gateway does not serve: a client could not use it. The
 * text of any other response is the same.
 */
export function withServedVersions(text: Buffer): Buffer {
  const path = ['result', 'supportedVersions'];
  const place = findRange(text, path);
  const versions = versionsAt(text, path);
  if (typeof place !== 'object' || versions === undefined) return text;
  const served = versions.filter((version) => isLegacy(version) || isModernServed(version));
  return served.length === versions.length ? text : replaceParts(text, [{ ...place, by: JSON.stringify(served) }]);
}

const isModernServed = (version: unknown): boolean => (modernRevisions as readonly unknown[]).includes(version);
