import type { ByteRange } from '../../json/byte-range.ts';
import { type Members, memberIndex } from '../../json/object-members.ts';
import { readScalar } from '../../json/scalar.ts';
import { scanObject } from '../../json/scan.ts';
import { findRange, type Replacement, replaceParts, sortByStart } from '../../json/splice.ts';
import { cutFromEach, type NewMembers, removalOf } from '../../message/edit-members.ts';
import { type Message, memberRange } from '../../message/message.ts';
import { serverInfoKey } from '../legacy-on-modern/opening.ts';

/** What a legacy server's response answers, and what is told with it. */
export interface TranslatedRequest {
  readonly method: string;
  /** The id as its client wrote it, as JSON text. */
  readonly idText: string;
  /** Of `resources/read`, which resource, as JSON text. */
  readonly uriText?: string | undefined;
  /** Who the server said it is, as JSON text; undefined if it did not. */
  readonly serverInfoText?: string | undefined;
  /** The request brought input with it. Nobody may keep its result (2026-07-28, server/utilities/caching, "Cache Key"). */
  readonly isRetry?: boolean;
}

/** The requests of which a result says how long it may be kept (2026-07-28, server/utilities/caching, "Cacheable Results"). */
const cacheable: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);

/**
 * A legacy server says nothing of it: the client may keep nothing, and show it to nobody else. A result without these
 * members is refused by clients, so retries have them, too.
 */
export const noCaching: NewMembers = [
  ['ttlMs', '0'],
  ['cacheScope', '"private"'],
];

const complete: NewMembers = [['resultType', '"complete"']];
const completeAndNotKept: NewMembers = [...complete, ...noCaching];

/**
 * A legacy server's response as a modern client can read it (2026-07-28, basic, "Result Responses" and "Error Codes"). Nothing
 * else of its text changes (P1).
 */
export function asModernResponse(response: Message, request: TranslatedRequest): Buffer {
  const id = memberRange(response, 'message', 'id');
  const replacements = changes(response, request);
  if (id !== undefined) replacements.push({ start: id.start, end: id.end, by: request.idText });
  const text = replaceParts(response.text, sortByStart(replacements));
  return request.method === 'tools/list' ? withoutTaskSupport(text) : text;
}

function changes(response: Message, request: TranslatedRequest): Replacement[] {
  const error = memberRange(response, 'message', 'error');
  if (error !== undefined) return changesOfError(response.text, request);
  const result = memberRange(response, 'message', 'result');
  return result === undefined ? [] : changesOfResult(response.text, result, request);
}

/** The members of a result get their place before all others; those that are there already have no meaning in the legacy era. */
function changesOfResult(text: Buffer, result: ByteRange, request: TranslatedRequest): Replacement[] {
  const members = membersAt(text, result);
  if (members === undefined) return [];
  // The revision asks for no hints of prompts/get; after a round of input they say that the prompt is not to be kept.
  const hasHints = cacheable.has(request.method) || (request.isRetry === true && request.method === 'prompts/get');
  const set = hasHints ? completeAndNotKept : complete;
  const replaced: Replacement[] = [];
  const added: string[] = [];
  for (const [key, by] of set) {
    const place = memberAt(members, result, key);
    if (place === undefined) added.push(`"${key}":${by}`);
    else replaced.push({ ...place, by });
  }
  const { serverInfoText } = request;
  if (serverInfoText !== undefined) {
    const info = `"${serverInfoKey}":${serverInfoText}`;
    const meta = memberAt(members, result, '_meta');
    if (meta === undefined) added.push(`"_meta":{${info}}`);
    else replaced.push(...insertion(text, meta, serverInfoKey, info));
  }
  const isEmpty = members.keys.length === 0;
  const at = result.start + 1;
  if (added.length > 0) replaced.push({ start: at, end: at, by: added.join() + (isEmpty ? '' : ',') });
  return replaced;
}

/** A member put into an object that has none of its key. */
function insertion(text: Buffer, object: ByteRange, key: string, member: string): Replacement[] {
  const members = membersAt(text, object);
  if (members === undefined || members.keys.includes(key)) return [];
  const at = object.start + 1;
  return [{ start: at, end: at, by: members.keys.length === 0 ? member : `${member},` }];
}

/** The members of an object in a text; undefined for what is none, or has a key twice. */
function membersAt(text: Buffer, { start, end }: ByteRange): Members | undefined {
  const members = scanObject(text.subarray(start, end));
  return members === 'duplicate_key' ? undefined : members;
}

function memberAt(members: Members, { start }: ByteRange, key: string): ByteRange | undefined {
  const index = memberIndex(members, key);
  if (index < 0) return undefined;
  return { start: start + (members.starts[index] as number), end: start + (members.ends[index] as number) };
}

const invalidParams = -32602;
const internalError = -32603;
const resourceNotFound = -32002;

/**
 * Codes that a server of the modern era must not use, or only in its sense: those that only the legacy era had, and those
 * that the specification keeps for itself.
 */
function modernCode(code: unknown): number | undefined {
  if (code === resourceNotFound) return invalidParams;
  const isReserved = typeof code === 'number' && code <= -32020 && code >= -32099;
  return isReserved ? internalError : undefined;
}

function changesOfError(text: Buffer, { method, uriText }: TranslatedRequest): Replacement[] {
  const place = findRange(text, ['error', 'code']);
  if (typeof place !== 'object') return [];
  const code = readScalar(text, place);
  const modern = modernCode(code);
  if (modern === undefined) return [];
  const isMissing = code === resourceNotFound && method === 'resources/read' && uriText !== undefined;
  return [{ ...place, by: String(modern) }, ...(isMissing ? namingResource(text, uriText) : [])];
}

/** Says which resource is missing, where the server did not (2026-07-28, server/resources, "Error Handling"). */
function namingResource(text: Buffer, uriText: string): Replacement[] {
  const error = findRange(text, ['error']);
  const data = findRange(text, ['error', 'data']);
  if (typeof data === 'object') return insertion(text, data, 'uri', `"uri":${uriText}`);
  return typeof error === 'object' ? insertion(text, error, 'data', `"data":{"uri":${uriText}}`) : [];
}

/** Tools do not say whether they can be run as tasks of 2025-11-25: nobody can ask for that. */
const withoutTaskSupport = (text: Buffer): Buffer =>
  cutFromEach(text, ['result', 'tools'], (tool) => removalOf(tool, ['execution', 'taskSupport']));
