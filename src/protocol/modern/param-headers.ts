import { type Message, placeOf } from '../message.ts';
import { findPlace } from '../splice.ts';
import { decodeHeader, type RequestHeaders } from './mirrored-headers.ts';

/** A parameter of a tool that its calls mirror as `Mcp-Param-<name>` (2026-07-28, server/tools, "x-mcp-header"). */
export interface ParamHeader {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean';
  /** The keys that lead from the arguments to the value. */
  readonly path: readonly string[];
}

const annotation = 'x-mcp-header';
const tokenForm = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;

/** A schema with more subschemas than this is not looked through (P8). */
const maxSchemas = 10_000;

/** A value that lies deeper is not mirrored (P8): each level of the way to it is read by itself. */
const maxPathLength = 32;

/** Keywords below which there are schemas to which no path of `properties` alone leads. */
const lists = ['prefixItems', 'oneOf', 'anyOf', 'allOf'];
const maps = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];
const singles = [
  ...['items', 'contains', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems', 'propertyNames'],
  ...['not', 'if', 'then', 'else'],
];

/**
 * The parameters that a tool's schema wants to be mirrored. None if one of its annotations breaks the rules: clients must
 * not offer such a tool, so that there is nothing to be checked.
 */
export function readParamHeaders(inputSchema: unknown): readonly ParamHeader[] {
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
    if (seen > maxSchemas) return [];
    const entries = new Map<string, unknown>(Object.entries(schema));
    const name = entries.get(annotation);
    if (name !== undefined) {
      const type = entries.get('type');
      if (typeof name !== 'string' || !tokenForm.test(name) || names.has(name.toLowerCase())) return [];
      if (path === undefined || path.length === 0) return [];
      if (type !== 'string' && type !== 'integer' && type !== 'boolean') return [];
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
  const place = placeOf(call, 'params', 'arguments');
  if (place === undefined) return undefined;
  const given = call.text.subarray(place.start, place.end);
  for (const { name, type, path } of declared) {
    const found = findPlace(given, path);
    if (found === 'duplicate_key') return found;
    if (found === 'absent') continue;
    const text = given.toString('utf8', found.start, found.end);
    const value: unknown = JSON.parse(text);
    if (value === null || typeof value === 'object') continue; // the tool's to refuse
    const header = decodeHeader(headers[`mcp-param-${name.toLowerCase()}`]);
    if (header === undefined || !isSame(header, value, text, type)) return { header: `Mcp-Param-${name}` };
  }
  return undefined;
}

const decimalForm = /^-?[0-9]{1,40}(?:\.[0-9]{1,40})?$/;

function isSame(header: string, value: unknown, text: string, type: ParamHeader['type']): boolean {
  // `42.0` and `42` are equal ("Server Validation"). Beyond what is exact, different numbers would be, too.
  if (type === 'integer' && Number.isSafeInteger(value) && decimalForm.test(header)) return Number(header) === value;
  return header === (typeof value === 'number' ? text : String(value));
}
