import { readScalar } from '../../json/scalar.ts';
import { findRange, replaceParts } from '../../json/splice.ts';
import { cutFromEach, removalOf, withoutMember } from '../../message/edit-members.ts';
import type { Message } from '../../message/message.ts';

/**
 * A modern server's response as a legacy client can read it. What the modern era added to results (`resultType`, `ttlMs`,
 * `cacheScope`, `serverInfo`) stays: results of the legacy era may have further members. Changed is what its clients refuse.
 * @param method of the request
 */
export function asLegacyResponse(response: Message, method: string): Buffer {
  const { text } = response;
  if (response.memberRanges.message?.keys.includes('error')) return withLegacyCode(text, method);
  if (method === 'tools/list') return withLegacySchemas(text);
  return method === 'tools/call' ? withLegacyStructure(text) : text;
}

const resourceNotFound = -32002;

/** Codes that the modern era brought, and what the legacy one has for them. */
const legacyCodes: ReadonlyMap<unknown, number> = new Map([
  [-32020, -32603], // HeaderMismatch: the headers are the gateway's
  [-32021, -32600], // MissingRequiredClientCapability
  [-32022, -32603], // UnsupportedProtocolVersion: the version is the gateway's
]);

function withLegacyCode(text: Buffer, method: string): Buffer {
  const place = findRange(text, ['error', 'code']);
  if (typeof place !== 'object') return text;
  const code = readScalar(text, place);
  // Of a resource that is not there the modern era says which (2026-07-28, server/resources, "Error Handling").
  const isMissing = method === 'resources/read' && code === -32602 && hasMember(text, ['error', 'data', 'uri']);
  const legacy = isMissing ? resourceNotFound : legacyCodes.get(code);
  return legacy === undefined ? text : replaceParts(text, [{ ...place, by: String(legacy) }]);
}

const hasMember = (text: Buffer, path: readonly string[]): boolean => typeof findRange(text, path) === 'object';

/** Structured content is an object in the legacy era; any other is in the text of the result as well (2026-07-28, server/tools). */
function withLegacyStructure(text: Buffer): Buffer {
  const path = ['result', 'structuredContent'];
  const place = findRange(text, path);
  return typeof place === 'object' && text[place.start] !== 0x7b ? withoutMember(text, path) : text;
}

/** Without those output schemas of tools that are not of objects: a legacy client would refuse the whole list. */
const withLegacySchemas = (text: Buffer): Buffer =>
  cutFromEach(text, ['result', 'tools'], (tool) => {
    const type = findRange(tool, ['outputSchema', 'type']);
    const isOfObjects = typeof type === 'object' && tool.toString('utf8', type.start, type.end) === '"object"';
    return isOfObjects ? undefined : removalOf(tool, ['outputSchema']);
  });
