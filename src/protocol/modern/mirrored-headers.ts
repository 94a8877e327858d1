import { isUtf8 } from 'node:buffer';
import { type Message, memberRange, memberValue } from '../message/message.ts';

/**
 * The headers that mirror parts of the body of a modern request (2026-07-28, basic/transports/streamable-http, "Request
 * Metadata"). Intermediaries may decide by these headers, so they must agree with the body.
 */

/** Headers as Node.js returns them: names in lower case, blanks around values removed. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The member of `params` that `Mcp-Name` mirrors, by method. */
const nameSources: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  // Extension io.modelcontextprotocol/tasks, "Routing Headers".
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

/** Methods whose `Mcp-Name` common clients leave out. A wrong one is refused as for other methods. */
const mayLackName: ReadonlySet<string | undefined> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel']);

/** Returns the header that disagrees with the body; undefined if all present headers agree. */
export function disagreeingHeader(
  { method }: Message,
  protocolVersion: string | undefined,
  headers: RequestHeaders,
): string | undefined {
  const version = headers['mcp-protocol-version'];
  if (version !== undefined && protocolVersion !== undefined && version !== protocolVersion) {
    return 'MCP-Protocol-Version';
  }
  const methodHeader = headers['mcp-method'];
  return methodHeader !== undefined && methodHeader !== method ? 'Mcp-Method' : undefined;
}

/** Returns a required header that is missing, or an `Mcp-Name` that disagrees with the body. */
export function missingHeader(request: Message, headers: RequestHeaders): string | undefined {
  if (headers['mcp-protocol-version'] === undefined) return 'MCP-Protocol-Version';
  if (headers['mcp-method'] === undefined) return 'Mcp-Method';
  if (headers['mcp-name'] === undefined && mayLackName.has(request.method)) return undefined;
  const name = readMirroredName(request);
  // The server refuses a request without its name.
  if (name === undefined) return isNameTooLong(request) ? 'Mcp-Name' : undefined;
  return decodeHeader(headers['mcp-name']) === name ? undefined : 'Mcp-Name';
}

/** The headers that a client sends with a message of this revision. */
export function mirroredHeaders(message: Message, protocolVersion: string): Record<string, string> {
  const name = readMirroredName(message);
  return {
    'mcp-protocol-version': protocolVersion,
    ...(message.method !== undefined && { 'mcp-method': encodeHeader(message.method) }),
    ...(name !== undefined && { 'mcp-name': encodeHeader(name) }),
  };
}

/** The value of `Mcp-Name` for a message; undefined if it has no such header. */
function readMirroredName(message: Message): string | undefined {
  const source = nameSources.get(message.method as string);
  const name = source === undefined ? undefined : memberValue(message, 'params', source);
  return typeof name === 'string' ? name : undefined;
}

/** True if the name exists, but is too long for a header. */
function isNameTooLong(request: Message): boolean {
  const source = nameSources.get(request.method as string);
  const range = source === undefined ? undefined : memberRange(request, 'params', source);
  return range !== undefined && request.text[range.start] === 0x22;
}

const visibleAscii = /^[\t\x20-\x7e]*$/;
const base64Prefix = '=?base64?';
const base64Suffix = '?=';

/** Prefix and suffix may not share the question mark: `=?base64?=` stands for itself. */
const isBase64Form = (value: string): boolean =>
  value.startsWith(base64Prefix) && value.slice(base64Prefix.length).endsWith(base64Suffix);

/**
 * Decodes a mirrored value ("Value Encoding"): plain text, or the base64 form of a text. Undefined if the header is
 * missing or contains invalid characters, or if the base64 is not canonical.
 */
export function decodeHeader(value: string | readonly string[] | undefined): string | undefined {
  if (typeof value !== 'string' || !visibleAscii.test(value)) return undefined;
  if (!isBase64Form(value)) return value;
  const encoded = value.slice(base64Prefix.length, -base64Suffix.length);
  const bytes = Buffer.from(encoded, 'base64');
  return bytes.toString('base64') === encoded && isUtf8(bytes) ? bytes.toString() : undefined;
}

/**
 * Encodes a text as the value of a mirrored header ("Value Encoding"): unchanged if a header can contain it, otherwise
 * in base64. Blanks at the ends would be removed on the way, and a text in the base64 form would be decoded.
 */
export function encodeHeader(text: string): string {
  const isPlain = visibleAscii.test(text) && !/^[\t ]|[\t ]$/.test(text);
  return isPlain && !isBase64Form(text) ? text : base64Prefix + Buffer.from(text).toString('base64') + base64Suffix;
}
