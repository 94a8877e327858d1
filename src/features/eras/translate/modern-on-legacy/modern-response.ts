// src/features/eras/translate/modern-on-legacy: messages of modern clients for legacy servers, and the way back.

import type { ByteRange } from '../../../../core/protocol/json.ts';
import {
  findRange,
  type Members,
  memberIndex,
  type Replacement,
  readScalar,
  replaceParts,
  SoughtKey,
  scanObject,
  sortByStart,
} from '../../../../core/protocol/json.ts';
import { changedMessage } from '../../../../core/protocol/message/changed-message.ts';
import { findRemoval, type NewMembers, removeFromEach } from '../../../../core/protocol/message/edit-members.ts';
import { createFaultResponse } from '../../../../core/protocol/message/gateway-fault.ts';
import { type Message, memberRange } from '../../../../core/protocol/message/message.ts';
import { methodOf } from '../../../../core/protocol/methods/methods.ts';
import { serverInfoKey } from '../../../../core/protocol/modern/envelope.ts';
import type { ClientId } from '../../../../core/protocol/modern/renumber.ts';
import { resourceNotFound } from '../../../../core/protocol/revisions.ts';
import { boundedWalks } from '../../../../core/util/timing/work-meter.ts';

/** The request that a legacy server's response answers, and the data that the translation adds. */
export interface TranslatedRequest extends ClientId {
  readonly method: string;
  /** The URI that the request reads (`readsByUri`), as JSON text. */
  readonly uriText?: string | undefined;
  /** The server's identity, as JSON text; undefined if it gave none. */
  readonly serverInfoText?: string | undefined;
  /**
   * The request contained input, so its result must not be cached (2026-07-28, server/utilities/caching, "Cache Key").
   */
  readonly isRetry?: boolean;
}

/**
 * A legacy server gives no caching hints, so the client may cache nothing and share nothing. Clients refuse a result
 * without these members, so retries have them, too.
 */
export const noCaching: NewMembers = [
  ['ttlMs', '0'],
  ['cacheScope', '"private"'],
];

const complete: NewMembers = [['resultType', '"complete"']];
const completeAndUncached: NewMembers = [...complete, ...noCaching];

/**
 * Converts a legacy server's response for a modern client (2026-07-28, basic, "Result Responses" and "Error Codes").
 * Nothing else of its text changes (P1).
 */
export function asModernResponse(response: Message, request: TranslatedRequest): Message {
  const isToolList = request.method === 'tools/list';
  const text = isToolList ? boundedWalks(() => modernText(response, request)) : modernText(response, request);
  if (text === undefined || text === 'too_much_work') return createFaultResponse('list_unreadable', request.clientId);
  return changedMessage(response, text, { id: request.clientId });
}

/** Undefined for a list that cannot be changed. */
function modernText(response: Message, request: TranslatedRequest): Buffer | undefined {
  const id = memberRange(response, 'message', 'id');
  const replacements = findChanges(response, request);
  if (id !== undefined) replacements.push({ start: id.start, end: id.end, by: request.idText });
  const text = replaceParts(response.text, sortByStart(replacements));
  return request.method === 'tools/list' ? withoutTaskSupport(text) : text;
}

function findChanges(response: Message, request: TranslatedRequest): Replacement[] {
  const error = memberRange(response, 'message', 'error');
  if (error !== undefined) return findErrorChanges(response.text, request);
  const result = memberRange(response, 'message', 'result');
  return result === undefined ? [] : findResultChanges(response.text, result, request);
}

/**
 * Finds the changes of a result. New members come before all others; existing ones are replaced, since they have no
 * meaning in the legacy era.
 */
function findResultChanges(text: Buffer, result: ByteRange, request: TranslatedRequest): Replacement[] {
  const members = readMembers(text, result);
  if (members === undefined) return [];
  // The revision requires no hints for prompts/get. After a round of input they say that the prompt must not be cached.
  const hasHints =
    methodOf(request.method).isCacheable || (request.isRetry === true && request.method === 'prompts/get');
  const set = hasHints ? completeAndUncached : complete;
  const replaced: Replacement[] = [];
  const added: string[] = [];
  for (const [key, by] of set) {
    const range = findMember(members, result, key);
    if (range === undefined) added.push(`"${key}":${by}`);
    else replaced.push({ ...range, by });
  }
  const content = request.method === 'tools/call' ? contentFor(text, result, members) : undefined;
  if (content !== undefined) added.push(content);
  const { serverInfoText } = request;
  if (serverInfoText !== undefined) {
    const info = `"${serverInfoKey}":${serverInfoText}`;
    const meta = findMember(members, result, '_meta');
    if (meta === undefined) added.push(`"_meta":{${info}}`);
    else replaced.push(...insertMember(text, meta, serverInfoKey, info));
  }
  const isEmpty = members.keys.length === 0;
  const at = result.start + 1;
  if (added.length > 0) replaced.push({ start: at, end: at, by: added.join() + (isEmpty ? '' : ',') });
  return replaced;
}

/**
 * Returns the `content` for the result of a tool that has none. Clients of 2026-07-28 refuse such a result. Clients of
 * legacy revisions take it, since their SDKs assume an empty list. Revision 2024-10-07 wrote one value, without content
 * blocks. Undefined if the result needs no content.
 */
function contentFor(text: Buffer, result: ByteRange, members: Members): string | undefined {
  if (members.keys.includes('content') || members.keys.includes('task')) return undefined;
  const value = findMember(members, result, 'toolResult');
  if (value === undefined) return '"content":[]';
  const valueText = text.toString('utf8', value.start, value.end);
  const blockText = valueText.startsWith('"') ? valueText : JSON.stringify(valueText);
  return `"content":[{"type":"text","text":${blockText}}]`;
}

/** Inserts a member into an object that has no member with its key. */
function insertMember(text: Buffer, object: ByteRange, key: string, member: string): Replacement[] {
  const members = readMembers(text, object);
  if (members === undefined || members.keys.includes(key)) return [];
  const at = object.start + 1;
  return [{ start: at, end: at, by: members.keys.length === 0 ? member : `${member},` }];
}

/** The members of an object in a text; undefined if it is not an object, or has a key twice. */
function readMembers(text: Buffer, { start, end }: ByteRange): Members | undefined {
  const members = scanObject(text.subarray(start, end));
  return members === 'duplicate_key' ? undefined : members;
}

function findMember(members: Members, { start }: ByteRange, key: string): ByteRange | undefined {
  const index = memberIndex(members, key);
  if (index < 0) return undefined;
  return { start: start + (members.starts[index] as number), end: start + (members.ends[index] as number) };
}

const invalidParams = -32602;
const internalError = -32603;

/**
 * Returns the replacement of an error code that a modern server must not use. Some codes exist only in the legacy era;
 * others are reserved for the specification's own meanings. Undefined if the code may stay.
 */
function toModernCode(code: unknown): number | undefined {
  if (code === resourceNotFound) return invalidParams;
  const isReserved = typeof code === 'number' && code <= -32020 && code >= -32099;
  return isReserved ? internalError : undefined;
}

function findErrorChanges(text: Buffer, { uriText }: TranslatedRequest): Replacement[] {
  const range = findRange(text, ['error', 'code']);
  if (typeof range !== 'object') return [];
  const code = readScalar(text, range);
  const modern = toModernCode(code);
  if (modern === undefined) return [];
  const isMissing = code === resourceNotFound && uriText !== undefined;
  return [{ ...range, by: String(modern) }, ...(isMissing ? insertResourceUri(text, uriText) : [])];
}

/** Adds the URI of the missing resource if the server did not (2026-07-28, server/resources, "Error Handling"). */
function insertResourceUri(text: Buffer, uriText: string): Replacement[] {
  const error = findRange(text, ['error']);
  const data = findRange(text, ['error', 'data']);
  if (typeof data === 'object') return insertMember(text, data, 'uri', `"uri":${uriText}`);
  return typeof error === 'object' ? insertMember(text, error, 'data', `"data":{"uri":${uriText}}`) : [];
}

const taskSupport = new SoughtKey('taskSupport');

/** Removes the statements of tools whether they can run as tasks of 2025-11-25: no client can request that. */
function withoutTaskSupport(text: Buffer): Buffer | undefined {
  if (!taskSupport.mayBeIn(text)) return text;
  return removeFromEach(text, ['result', 'tools'], (tool) => findRemoval(tool, ['execution', 'taskSupport']));
}
