import { isUtf8 } from 'node:buffer';
import { type Message, memberRange, memberValue } from '../message/message.ts';

/**
 * The headers that mirror what is in the body of a modern request (2026-07-28, basic/transports/streamable-http, "Request
 * Metadata"). Who is on the way may decide by them, so they must say what the body says.
 */

/** Headers as Node.js gives them: names in lower case, blanks around values cut. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Which member of `params` `Mcp-Name` mirrors, by method. */
const nameSources: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  // Extension io.modelcontextprotocol/tasks, "Routing Headers".
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

/** The header that says something else than the body does; undefined if those that are there agree. */
export function disagreeingHeader(
  { method }: Message,
  protocolVersion: string | undefined,
  headers: RequestHeaders,
): string | undefined {
  const version = headers['mcp-protocol-version'];
  if (version !== undefined && protocolVersion !== undefined && version !== protocolVersion) {
    return 'MCP-Protocol-Version';
  }
  const named = headers['mcp-method'];
  return named !== undefined && named !== method ? 'Mcp-Method' : undefined;
}

/** The header that a request must have and has not, or an `Mcp-Name` that is not the body's. */
export function missingHeader(request: Message, headers: RequestHeaders): string | undefined {
  if (headers['mcp-protocol-version'] === undefined) return 'MCP-Protocol-Version';
  if (headers['mcp-method'] === undefined) return 'Mcp-Method';
  const name = nameOf(request);
  if (name === undefined) return isTooLong(request) ? 'Mcp-Name' : undefined; // what lacks its name is the server's to refuse
  return decodeHeader(headers['mcp-name']) === name ? undefined : 'Mcp-Name';
}

/** The headers that a client sends with a message of this revision. */
export function mirroredHeaders(message: Message, protocolVersion: string): Record<string, string> {
  const name = nameOf(message);
  return {
    'mcp-protocol-version': protocolVersion,
    ...(message.method !== undefined && { 'mcp-method': encodeHeader(message.method) }),
    ...(name !== undefined && { 'mcp-name': encodeHeader(name) }),
  };
}

/** What `Mcp-Name` says of a message; undefined where it has no such header. */
function nameOf(message: Message): string | undefined {
  const source = nameSources.get(message.method as string);
  const name = source === undefined ? undefined : memberValue(message, 'params', source);
  return typeof name === 'string' ? name : undefined;
}

/** A name that is longer than any header can say. */
function isTooLong(request: Message): boolean {
  const source = nameSources.get(request.method as string);
  const place = source === undefined ? undefined : memberRange(request, 'params', source);
  return place !== undefined && request.text[place.start] === 0x22;
}

const visibleAscii = /^[\t\x20-\x7e]*$/;
const base64Prefix = '=?base64?';
const base64Suffix = '?=';

/** The two may not share the question mark: `=?base64?=` stands for itself. */
const isBase64Form = (value: string): boolean =>
  value.startsWith(base64Prefix) && value.slice(base64Prefix.length).endsWith(base64Suffix);

/**
 * What a mirrored value stands for ("Value Encoding"): itself, or the text that it is the base64 form of. Undefined if
 * there is none, if it holds characters that no header may hold, or if the base64 is not in its one right form.
 */
export function decodeHeader(value: string | readonly string[] | undefined): string | undefined {
  if (typeof value !== 'string' || !visibleAscii.test(value)) return undefined;
  if (!isBase64Form(value)) return value;
  const encoded = value.slice(base64Prefix.length, -base64Suffix.length);
  const bytes = Buffer.from(encoded, 'base64');
  return bytes.toString('base64') === encoded && isUtf8(bytes) ? bytes.toString() : undefined;
}

/**
 * A text as the value of a mirrored header ("Value Encoding"): as it is where a header can hold it, else in base64. Blanks
 * at its ends would be cut on the way, and what looks like the base64 form would be decoded.
 */
export function encodeHeader(text: string): string {
  const isPlain = visibleAscii.test(text) && !/^[\t ]|[\t ]$/.test(text);
  return isPlain && !isBase64Form(text) ? text : base64Prefix + Buffer.from(text).toString('base64') + base64Suffix;
}
