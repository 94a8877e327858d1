import { readScalar, type Scalar } from '../json/scalar.ts';
import { findRange } from '../json/splice.ts';
import { type Message, memberRange } from '../message/message.ts';
import { decodeHeader, encodeHeader, type RequestHeaders } from './mirrored-headers.ts';

/** A parameter of a tool that its calls mirror as `Mcp-Param-<name>` (2026-07-28, server/tools, "x-mcp-header"). */
export interface ParamHeader {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean';
  /** The keys that lead from the arguments to the value. */
  readonly path: readonly string[];
}

/** What marks a parameter in a tool's schema. */
const annotation = 'x-mcp-header';
const escapedAscii = /\\u00([2-7][0-9a-f])/gi;
const tokenForm = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;

/** A schema with more subschemas than this is not looked through, and its tool not offered (P8). */
const maxSchemas = 10_000;

/** A tool that wants a value mirrored which lies deeper is not offered (P8): each level of the way is read by itself. */
const maxPathLength = 32;

/**
 * False for a text of JSON in which no key is the annotation, however it is written: `\u0078-mcp-header` is the same key.
 * Only texts with such escapes cost more than a search.
 */
export function mayMirror(json: string | Buffer): boolean {
  if (json.includes(annotation)) return true;
  if (!json.includes('\\u00')) return false;
  const plain = json
    .toString()
    .replace(escapedAscii, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return plain.includes(annotation);
}

/** Keywords below which there are schemas to which no path of `properties` alone leads. */
const lists = ['prefixItems', 'oneOf', 'anyOf', 'allOf'];
const maps = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];
const singles = [
  ...['items', 'contains', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems', 'propertyNames'],
  ...['not', 'if', 'then', 'else'],
];

/**
 * The parameters that a tool's schema wants to be mirrored; undefined if one of its annotations breaks the rules: clients
 * over HTTP must not offer such a tool.
 */
export function readParamHeaders(inputSchema: unknown): readonly ParamHeader[] | undefined {
  const found: ParamHeader[] = [];
  const names = new Set<string>();
  const left: { readonly schema: unknown; readonly path: readonly string[] | undefined }[] = [
    { schema: inputSchema, path: [] },
  ];
  let seen = 0;
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { schema, path } = next;
    if (typeof schema !== 'object' || schema === null) continue;
    seen += 1;
    if (seen > maxSchemas) return undefined;
    const entries = new Map<string, unknown>(Object.entries(schema));
    const name = entries.get(annotation);
    if (name !== undefined) {
      const type = entries.get('type');
      if (typeof name !== 'string' || !tokenForm.test(name) || names.has(name.toLowerCase())) return undefined;
      if (path === undefined || path.length === 0) return undefined;
      if (type !== 'string' && type !== 'integer' && type !== 'boolean') return undefined;
      names.add(name.toLowerCase());
      found.push({ name, type, path });
    }
    for (const [key, child] of childrenOf(entries.get('properties'))) {
      left.push({ schema: child, path: path && path.length < maxPathLength ? [...path, key] : undefined });
    }
    const others = [
      ...singles.map((keyword) => entries.get(keyword)),
      ...[...lists, ...maps].flatMap((keyword) => childrenOf(entries.get(keyword)).map(([, child]) => child)),
    ];
    for (const schema of others) left.push({ schema, path: undefined });
  }
  return found;
}

const childrenOf = (value: unknown): [string, unknown][] =>
  typeof value === 'object' && value !== null ? Object.entries(value) : [];

/**
 * Checks the mirrored parameters of a call. A value that is `null` or absent needs no header.
 * @returns the header that is missing or says something else than the body; `duplicate_key` if a key on the way to one of
 *   the values stands twice in the body
 */
export function checkParamHeaders(
  declared: readonly ParamHeader[],
  call: Message,
  headers: RequestHeaders,
): { readonly header: string } | 'duplicate_key' | undefined {
  const values = valuesOf(declared, call);
  if (values === 'duplicate_key') return values;
  const wrong = values.find((value) => {
    const header = decodeHeader(headers[headerOf(value)]);
    return header === undefined || !isSame(header, value);
  });
  return wrong && { header: `Mcp-Param-${wrong.name}` };
}

/**
 * The headers with which a client mirrors the parameters of a call ("Value Encoding"). None if a key on the way to one of
 * the values stands twice in the body: whatever they said, it would be wrong to somebody.
 */
export function paramHeadersOf(declared: readonly ParamHeader[], call: Message): Record<string, string> {
  const values = valuesOf(declared, call);
  if (values === 'duplicate_key') return {};
  const sent = values.filter(({ value }) => value !== undefined);
  return Object.fromEntries(sent.map((value) => [headerOf(value), encodeHeader(headerTextOf(value))]));
}

/** A value of a call that is mirrored: a string, a number or a boolean. */
interface MirroredValue extends ParamHeader {
  /** Undefined for one that is too long for any header. */
  readonly value: Exclude<Scalar, null> | undefined;
  /** As the call has it. */
  readonly text: string;
}

function valuesOf(declared: readonly ParamHeader[], call: Message): readonly MirroredValue[] | 'duplicate_key' {
  const place = memberRange(call, 'params', 'arguments');
  if (place === undefined) return [];
  const given = call.text.subarray(place.start, place.end);
  const values: MirroredValue[] = [];
  for (const param of declared) {
    const found = findRange(given, param.path, true);
    if (found === 'duplicate_key') return found;
    if (found === 'absent' || isStructure(given[found.start] as number)) continue; // a list or object is the tool's to refuse
    const value = readScalar(given, found);
    if (value !== null) values.push({ ...param, value, text: given.toString('utf8', found.start, found.end) });
  }
  return values;
}

const isStructure = (first: number): boolean => first === 0x7b || first === 0x5b;

const headerOf = ({ name }: ParamHeader): string => `mcp-param-${name.toLowerCase()}`;

/** Beyond what is exact a number stays as it is written, since another one could be meant. */
const headerTextOf = ({ value, text }: MirroredValue): string =>
  typeof value === 'number' && !Number.isSafeInteger(value) ? text : String(value);

const decimalForm = /^-?[0-9]{1,40}(?:\.[0-9]{1,40})?$/;

function isSame(header: string, { value, text, type }: MirroredValue): boolean {
  if (value === undefined) return false;
  // `42.0` and `42` are equal ("Server Validation"). Beyond what is exact, different numbers would be, too.
  if (type === 'integer' && Number.isSafeInteger(value) && decimalForm.test(header)) return Number(header) === value;
  return header === (typeof value === 'number' ? text : String(value));
}
