import type { ByteRange } from '../json.ts';
import { findRange, parseBounded, readScalar, type Scalar, SoughtKey } from '../json.ts';
import { type Message, memberRange } from '../message/message.ts';
import { decodeHeader, encodeHeader, type RequestHeaders } from './mirrored-headers.ts';

/** A parameter of a tool that its calls mirror as `Mcp-Param-<name>` (2026-07-28, server/tools, "x-mcp-header"). */
export interface ParamHeader {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean';
  /** The keys that lead from the arguments to the value. */
  readonly path: readonly string[];
}

/** The key that annotates a parameter in a tool's schema. */
const annotation = 'x-mcp-header';
const headerNamePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;

/** A schema with more subschemas is not read, and its tool is not offered (P8). */
const maxSchemas = 10_000;

/** A tool with a mirrored value that lies deeper is not offered (P8): each level of the path is read separately. */
const maxPathLength = 32;

const annotationKey = new SoughtKey(annotation);

/** False if no tool in a JSON text is annotated. */
export const mayMirror = (text: Buffer): boolean => annotationKey.mayBeIn(text);

/** Keywords with schemas that no path of `properties` alone leads to. */
const lists = ['prefixItems', 'oneOf', 'anyOf', 'allOf'];
const maps = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];
const singles = [
  'items',
  'contains',
  'additionalProperties',
  'unevaluatedProperties',
  'unevaluatedItems',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
];

/** A larger schema that mirrors parameters breaks the rules, as one with too many subschemas does (P8). */
const maxSchemaBytes = 64 * 1024;

/** The work of reading a tool, for the work meter: building its schema takes as long as reading many times its bytes. */
export const unitsOfTool = ({ start, end }: ByteRange): number => 64 + 8 * (end - start);

/** Returns the parameters that a tool of a list mirrors; undefined if it breaks the rules for them. */
export function readToolParams(tool: Buffer): readonly ParamHeader[] | undefined {
  if (!mayMirror(tool)) return [];
  const schema = findRange(tool, ['inputSchema']);
  if (typeof schema !== 'object') return schema === 'absent' ? [] : undefined;
  const value = parseBounded(tool.subarray(schema.start, schema.end), maxSchemaBytes);
  return value === undefined ? undefined : readParamHeaders(value);
}

/**
 * Reads the parameters that a tool's schema annotates. Undefined if one of its annotations breaks the rules: clients
 * over HTTP must not offer such a tool.
 */
export function readParamHeaders(inputSchema: unknown): readonly ParamHeader[] | undefined {
  const found: ParamHeader[] = [];
  const names = new Set<string>();
  const pending: { readonly schema: unknown; readonly path: readonly string[] | undefined }[] = [
    { schema: inputSchema, path: [] },
  ];
  let schemaCount = 0;
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { schema, path } = next;
    if (typeof schema !== 'object' || schema === null) continue;
    schemaCount += 1;
    if (schemaCount > maxSchemas) return undefined;
    const entries = new Map<string, unknown>(Object.entries(schema));
    const name = entries.get(annotation);
    if (name !== undefined) {
      const type = entries.get('type');
      if (typeof name !== 'string' || !headerNamePattern.test(name) || names.has(name.toLowerCase())) return undefined;
      if (path === undefined || path.length === 0) return undefined;
      if (type !== 'string' && type !== 'integer' && type !== 'boolean') return undefined;
      names.add(name.toLowerCase());
      found.push({ name, type, path });
    }
    for (const [key, child] of childrenOf(entries.get('properties'))) {
      pending.push({ schema: child, path: path && path.length < maxPathLength ? [...path, key] : undefined });
    }
    const others = [
      ...singles.map((keyword) => entries.get(keyword)),
      ...[...lists, ...maps].flatMap((keyword) => childrenOf(entries.get(keyword)).map(([, child]) => child)),
    ];
    for (const schema of others) pending.push({ schema, path: undefined });
  }
  return found;
}

const childrenOf = (value: unknown): [string, unknown][] =>
  typeof value === 'object' && value !== null ? Object.entries(value) : [];

/**
 * Checks the mirrored parameters of a call. A value that is `null` or absent needs no header.
 * @returns the header that is missing or disagrees with the body; `duplicate_key` if the body has a key on the path to
 *   one of the values twice
 */
export function checkParamHeaders(
  declared: readonly ParamHeader[],
  call: Message,
  headers: RequestHeaders,
): { readonly header: string } | 'duplicate_key' | undefined {
  const values = readMirroredValues(declared, call);
  if (values === 'duplicate_key') return values;
  const wrong = values.find((value) => {
    const header = decodeHeader(headers[formatHeaderName(value)]);
    return header === undefined || !isEqual(header, value);
  });
  return wrong && { header: `Mcp-Param-${wrong.name}` };
}

/**
 * The headers with which a client mirrors the parameters of a call ("Value Encoding"). None if the body has a key on
 * the path to one of the values twice: readers could find different values.
 */
export function paramHeadersOf(declared: readonly ParamHeader[], call: Message): Record<string, string> {
  const values = readMirroredValues(declared, call);
  if (values === 'duplicate_key') return {};
  const sent = values.filter(({ value }) => value !== undefined);
  return Object.fromEntries(sent.map((value) => [formatHeaderName(value), encodeHeader(formatHeaderValue(value))]));
}

/** A value of a call that is mirrored: a string, a number or a boolean. */
interface MirroredValue extends ParamHeader {
  /** Undefined for a value that is too long for any header. */
  readonly value: Exclude<Scalar, null> | undefined;
  /** The text of the value in the call. */
  readonly text: string;
}

function readMirroredValues(
  declared: readonly ParamHeader[],
  call: Message,
): readonly MirroredValue[] | 'duplicate_key' {
  const range = memberRange(call, 'params', 'arguments');
  if (range === undefined) return [];
  const argumentsText = call.text.subarray(range.start, range.end);
  const values: MirroredValue[] = [];
  for (const param of declared) {
    const found = findRange(argumentsText, param.path, true);
    if (found === 'duplicate_key') return found;
    // The tool refuses a list or an object.
    if (found === 'absent' || isStructure(argumentsText[found.start] as number)) continue;
    const value = readScalar(argumentsText, found);
    if (value !== null) values.push({ ...param, value, text: argumentsText.toString('utf8', found.start, found.end) });
  }
  return values;
}

const isStructure = (first: number): boolean => first === 0x7b || first === 0x5b;

const formatHeaderName = ({ name }: ParamHeader): string => `mcp-param-${name.toLowerCase()}`;

/** A number that is not exact stays as written, since another number could be meant. */
const formatHeaderValue = ({ value, text }: MirroredValue): string =>
  typeof value === 'number' && !Number.isSafeInteger(value) ? text : String(value);

const decimalPattern = /^-?[0-9]{1,40}(?:\.[0-9]{1,40})?$/;

function isEqual(header: string, { value, text, type }: MirroredValue): boolean {
  if (value === undefined) return false;
  // `42.0` and `42` are equal ("Server Validation"). Outside of the exact range different numbers would be equal, too.
  if (type === 'integer' && Number.isSafeInteger(value) && decimalPattern.test(header)) return Number(header) === value;
  return header === (typeof value === 'number' ? text : String(value));
}
