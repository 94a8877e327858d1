import type { ByteRange } from '../../../../core/protocol/json.ts';
import { findRange, readScalar, replaceParts, SoughtKey, scanList } from '../../../../core/protocol/json.ts';
import { changedMessage } from '../../../../core/protocol/message/changed-message.ts';
import { findRemoval, removeFromEach, withoutMember } from '../../../../core/protocol/message/edit-members.ts';
import { createFaultResponse } from '../../../../core/protocol/message/gateway-fault.ts';
import type { Message } from '../../../../core/protocol/message/message.ts';
import { readsByUri } from '../../../../core/protocol/methods/methods.ts';
import { modernErrorCodes, resourceNotFound } from '../../../../core/protocol/revisions.ts';
import { boundedWalks } from '../../../../core/util/timing/work-meter.ts';

/**
 * Converts a modern server's response for a legacy client. Members that the modern era added to results (`resultType`,
 * `ttlMs`, `cacheScope`, `serverInfo`) stay, since legacy results may have further members. Only parts that legacy
 * clients refuse are changed.
 * @param method the method of the request
 * @param offersTasks true if the client may ask for a task of each tool
 */
export function asLegacyResponse(response: Message, method: string, offersTasks = false): Message {
  const legacy = legacyText(response, method);
  const hasTools = offersTasks && method === 'tools/list' && !response.isError;
  const text = hasTools && legacy !== undefined ? withTaskSupport(legacy) : legacy;
  if (text === undefined) return createFaultResponse('list_unreadable', response.id ?? null);
  return text === response.text ? response : changedMessage(response, text, {});
}

function legacyText({ text, isError }: Message, method: string): Buffer | undefined {
  if (isError) return withLegacyCode(text, method);
  if (method === 'tools/list') return withLegacySchemas(text);
  return method === 'tools/call' ? withLegacyStructure(text) : text;
}

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
  const isMissing = readsByUri(method) && code === -32602 && hasMember(text, ['error', 'data', 'uri']);
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

/** Says of each tool that it can run as a task (2025-11-25, server/tools, `execution`). */
function withTaskSupport(text: Buffer): Buffer {
  const changed = boundedWalks(() => {
    const list = findRange(text, ['result', 'tools']);
    const tools = typeof list === 'object' ? scanList(text.subarray(list.start, list.end)) : undefined;
    const added = (tools ?? []).flatMap(({ start, end }) => {
      const at = (list as ByteRange).start + start;
      const tool = text.subarray(at, (list as ByteRange).start + end);
      if (tool[0] !== 0x7b || findRange(tool, ['name']) === 'absent' || findRange(tool, ['execution']) !== 'absent')
        return [];
      return [{ start: at + 1, end: at + 1, by: '"execution":{"taskSupport":"optional"},' }];
    });
    return replaceParts(text, added);
  });
  return changed === 'too_much_work' ? text : changed;
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
