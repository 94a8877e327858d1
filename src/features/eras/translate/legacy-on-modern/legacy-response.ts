import { readScalar } from '../../../../core/protocol/json/scalar.ts';
import { SoughtKey } from '../../../../core/protocol/json/sought-key.ts';
import { findRange, replaceParts } from '../../../../core/protocol/json/splice.ts';
import { findRemoval, removeFromEach, withoutMember } from '../../../../core/protocol/message/edit-members.ts';
import { createFaultResponse } from '../../../../core/protocol/message/gateway-fault.ts';
import { changedMessage, type Message } from '../../../../core/protocol/message/message.ts';
import { modernErrorCodes } from '../../../../core/protocol/revisions.ts';

/**
 * Converts a modern server's response for a legacy client. Members that the modern era added to results (`resultType`,
 * `ttlMs`, `cacheScope`, `serverInfo`) stay, since legacy results may have further members. Only parts that legacy
 * clients refuse are changed.
 * @param method the method of the request
 */
export function asLegacyResponse(response: Message, method: string): Message {
  const text = legacyText(response, method);
  if (text === undefined) return createFaultResponse('list_unreadable', response.id ?? null);
  return text === response.text ? response : changedMessage(response, text, {});
}

function legacyText({ text, isError }: Message, method: string): Buffer | undefined {
  if (isError) return withLegacyCode(text, method);
  if (method === 'tools/list') return withLegacySchemas(text);
  return method === 'tools/call' ? withLegacyStructure(text) : text;
}

const resourceNotFound = -32002;

/** Codes that the modern era introduced, and their replacements in the legacy era. */
const legacyCodes: ReadonlyMap<unknown, number> = new Map([
  [modernErrorCodes.headerMismatch, -32603], // the headers are the gateway's
  [modernErrorCodes.missingClientCapability, -32600],
  [modernErrorCodes.unsupportedVersion, -32603], // the version is the gateway's
]);

function withLegacyCode(text: Buffer, method: string): Buffer {
  const range = findRange(text, ['error', 'code']);
  if (typeof range !== 'object') return text;
  const code = readScalar(text, range);
  // The modern era names a missing resource in the error (2026-07-28, server/resources, "Error Handling").
  const isMissing = method === 'resources/read' && code === -32602 && hasMember(text, ['error', 'data', 'uri']);
  const legacy = isMissing ? resourceNotFound : legacyCodes.get(code);
  return legacy === undefined ? text : replaceParts(text, [{ ...range, by: String(legacy) }]);
}

const hasMember = (text: Buffer, path: readonly string[]): boolean => typeof findRange(text, path) === 'object';

/**
 * Removes structured content that is not an object, as the legacy era requires. The text of the result contains such
 * content as well (2026-07-28, server/tools).
 */
function withLegacyStructure(text: Buffer): Buffer {
  const path = ['result', 'structuredContent'];
  const range = findRange(text, path);
  return typeof range === 'object' && text[range.start] !== 0x7b ? withoutMember(text, path) : text;
}

const outputSchema = new SoughtKey('outputSchema');

/** Removes output schemas that do not describe objects: a legacy client would refuse the whole list. */
function withLegacySchemas(text: Buffer): Buffer | undefined {
  if (!outputSchema.mayBeIn(text)) return text;
  return removeFromEach(text, ['result', 'tools'], (tool) => {
    const type = findRange(tool, ['outputSchema', 'type']);
    const isObjectSchema = typeof type === 'object' && tool.toString('utf8', type.start, type.end) === '"object"';
    return isObjectSchema ? undefined : findRemoval(tool, ['outputSchema']);
  });
}
