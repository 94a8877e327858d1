import { isUtf8 } from 'node:buffer';
import { findModern, headerKeys, newestModern } from '../known-revisions.ts';
import { type Message, memberRange, memberValue } from '../message/message.ts';
import { methodOf } from '../methods/methods.ts';
import type { MirroredHeader, Revision } from '../revisions.ts';

/**
 * The headers that mirror parts of the body of a modern request (2026-07-28, basic/transports/streamable-http, "Request
 * Metadata"). Intermediaries may decide by these headers, so they must agree with the body.
 */

/** The names of the headers as Node.js returns them. */
const keyOf = (name: string): string => headerKeys.get(name) as string;

/** Headers as Node.js returns them: names in lower case, blanks around values removed. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The member of `params` that `Mcp-Name` mirrors. */
function nameSource({ method }: Message): string | undefined {
  const { nameHeader, target } = methodOf(method);
  return nameHeader === undefined ? undefined : target;
}

/**
 * Returns the header about the revision or the method that disagrees with the body; undefined if all that are present
 * agree.
 * @param protocolVersion the revision that the body names, if any, whether the gateway serves it or not
 */
export function disagreeingHeader(
  { method }: Message,
  protocolVersion: string | undefined,
  headers: RequestHeaders,
): string | undefined {
  for (const { name, mirrors } of (findModern(protocolVersion) ?? newestModern).headers) {
    if (mirrors !== 'revision' && mirrors !== 'method') continue;
    const given = headers[keyOf(name)];
    const expected = mirrors === 'method' ? method : (protocolVersion ?? given);
    if (given !== undefined && given !== expected) return name;
  }
  return undefined;
}

/** Returns a header of this revision that a request lacks, or that disagrees with the body. */
export function missingHeader(request: Message, headers: RequestHeaders, revision: Revision): string | undefined {
  for (const header of revision.headers) if (isMissing(header, request, headers)) return header.name;
  return undefined;
}

function isMissing({ name, mirrors }: MirroredHeader, request: Message, headers: RequestHeaders): boolean {
  const given = headers[keyOf(name)];
  if (mirrors === 'revision' || mirrors === 'method') return given === undefined;
  if (mirrors === 'subject' && given === undefined && methodOf(request.method).nameHeader === 'optional') return false;
  const expected = readText(request, mirrors);
  // The server refuses a request without its name.
  if (expected === undefined) return mirrors === 'subject' && isNameTooLong(request);
  return decodeHeader(given) !== expected;
}

/** The headers that a client of this revision sends with a message. */
export function mirroredHeaders(message: Message, revision: Revision): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { name, mirrors } of revision.headers) {
    const value = mirrors === 'revision' ? revision.name : readText(message, mirrors);
    if (value !== undefined) headers[keyOf(name)] = mirrors === 'revision' ? value : encodeHeader(value);
  }
  return headers;
}

/** The part of a message that a header mirrors; undefined if the message lacks it, or if it is no text. */
function readText(message: Message, mirrors: Exclude<MirroredHeader['mirrors'], 'revision'>): string | undefined {
  if (mirrors === 'method') return message.method;
  if (mirrors === 'subject') return readMirroredName(message);
  const value = memberValue(message, 'meta', mirrors.meta);
  return typeof value === 'string' ? value : undefined;
}

/** The value of `Mcp-Name` for a message; undefined if it has no such header. */
function readMirroredName(message: Message): string | undefined {
  const source = nameSource(message);
  const name = source === undefined ? undefined : memberValue(message, 'params', source);
  return typeof name === 'string' ? name : undefined;
}

/** True if the name exists, but is too long for a header. */
function isNameTooLong(request: Message): boolean {
  const source = nameSource(request);
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
