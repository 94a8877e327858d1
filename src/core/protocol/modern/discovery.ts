import { errorCodeIn, findRange, parseBounded, replaceParts, scanObject, valueAt } from '../json.ts';
import { findRevision, isLegacyRevision, modernRevisions } from '../known-revisions.ts';
import { changedMessage } from '../message/changed-message.ts';
import type { Message } from '../message/message.ts';
import { modernErrorCodes } from '../revisions.ts';

/**
 * The era of a server, as its answer to `server/discover` shows it (2026-07-28, basic/transports/stdio, "Backward
 * Compatibility").
 */
export type Discovery =
  | {
      readonly era: 'modern';
      /** The revisions that both the server and the gateway serve. */
      readonly revisions: readonly string[];
      /** All values in the server's list of revisions, unchecked. */
      readonly supported: readonly unknown[];
      /** The capabilities that the server declares; undefined if the response has no result. */
      readonly capabilities: ReadonlySet<string> | undefined;
    }
  | { readonly era: 'legacy' };

/**
 * Reads a response to `server/discover`. Any error except the one that names the server's revisions means a legacy
 * server. So does a list of legacy revisions alone, with which stateful servers of the Go SDK answer.
 */
export function readDiscovery(response: Message): Discovery {
  const versions = readVersions(response);
  if (versions === undefined) return { era: 'legacy' };
  const revisions = modernRevisions.filter((revision) => versions.includes(revision));
  return { era: 'modern', revisions, supported: versions, capabilities: readCapabilities(response) };
}

/**
 * The newest revision that a server and the gateway both serve, if the server has refused a request because of its
 * revision. The request can be repeated with that revision.
 */
export function revisionToRetry(response: Message): string | undefined {
  if (!response.isError) return undefined;
  const discovery = readDiscovery(response);
  return discovery.era === 'modern' ? discovery.revisions.at(-1) : undefined;
}

function readCapabilities(response: Message): ReadonlySet<string> | undefined {
  const result = valueAt(response.text, ['result']);
  const declared = result && valueAt(result, ['capabilities']);
  const members = declared && scanObject(declared);
  return result && new Set(typeof members === 'object' ? members.keys : []);
}

/** Returns the server's list of revisions; undefined if none of them is modern. */
function readVersions({ text, isError }: Message): readonly unknown[] | undefined {
  if (isError && errorCodeIn(text) !== modernErrorCodes.unsupportedVersion) return undefined;
  const supported = versionsAt(text, isError ? ['error', 'data', 'supported'] : ['result', 'supportedVersions']);
  return supported?.some((version) => !isLegacyRevision(version)) ? supported : undefined;
}

/** A longer list of revisions is ignored (P8). */
const maxListBytes = 64 * 1024;

/** Reads a list of revisions in a text; undefined if there is none. */
export function versionsAt(text: Buffer, path: readonly string[]): readonly unknown[] | undefined {
  const list = valueAt(text, path);
  const versions = list && parseBounded(list, maxListBytes);
  return Array.isArray(versions) ? versions : undefined;
}

/**
 * Removes the modern revisions that the gateway does not serve from a response to `server/discover`: a client could not
 * use them. Any other response stays unchanged.
 */
export function withServedVersions(response: Message): Message {
  const { text } = response;
  const path = ['result', 'supportedVersions'];
  const range = findRange(text, path);
  const versions = versionsAt(text, path);
  if (typeof range !== 'object' || versions === undefined) return response;
  const served = versions.filter((version) => findRevision(version) !== undefined);
  if (served.length === versions.length) return response;
  return changedMessage(response, replaceParts(text, [{ ...range, by: JSON.stringify(served) }]), {});
}
