import assert from 'node:assert/strict';
import fc from 'fast-check';
import { maxForwardedBytes, readForwardedHeaders } from '../../src/core/protocol/http/forwarded-headers.ts';
import { isJsonContentType, readAccept } from '../../src/core/protocol/http/media-types.ts';
import { newestModern } from '../../src/core/protocol/known-revisions.ts';
import {
  decodeHeader,
  disagreeingHeader,
  encodeHeader,
  mirroredHeaders,
  missingHeader,
} from '../../src/core/protocol/modern/mirrored-headers.ts';
import {
  checkParamHeaders,
  type ParamHeader,
  paramHeadersOf,
  readParamHeaders,
} from '../../src/core/protocol/modern/param-headers.ts';
import { read } from '../core/protocol/modern/read.ts';
import { linesOf, mutatedText, record } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';

const corpus = linesOf('headers');
/** Texts without lone surrogates: those have no UTF-8. */
const text = fc.oneof(
  mutatedText(corpus).map((line) => Buffer.from(line).toString()),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 20 }),
);

/** "Value Encoding" (2026-07-28, basic/transports/streamable-http), read plainly. */
function decodePlainly(value: string): string | undefined {
  if (!/^[\t -~]*$/.test(value)) return undefined;
  const [, base64] = /^=\?base64\?(.*)\?=$/s.exec(value) ?? [];
  if (base64 === undefined) return value;
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(base64)) return undefined;
  try {
    const bytes = Buffer.from(base64, 'base64');
    if (bytes.toString('base64') !== base64) return undefined; // bits that nobody uses
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const values = createFuzzer({
  name: 'values of mirrored headers: written, they are what a header can hold, and read they are the same',
  share: 8,
  cases: text,
  seeds: corpus,
  check(given) {
    const written = encodeHeader(given);
    assert.match(written, /^(?:[!-~](?:[\t -~]*[!-~])?)?$/);
    assert.equal(decodeHeader(written), given);
    assert.equal(decodeHeader(given), decodePlainly(given));
  },
});

const named = fc.constantFrom('tools/call', 'prompts/get', 'resources/read', 'tasks/get', 'tools/list', 'x');
const members = { 'prompts/get': 'name', 'resources/read': 'uri', 'tasks/get': 'taskId' } as Record<string, string>;

const mirrored = createFuzzer({
  name: 'mirrored headers: they say what the body says; any other is found',
  share: 6,
  cases: fc.tuple(named, text, text, text),
  check([method, name, other, version]) {
    const request = read({ jsonrpc: '2.0', id: 1, method, params: { [members[method] ?? 'name']: name } });
    const revision = { ...newestModern, name: version };
    const headers = mirroredHeaders(request, revision);
    assert.equal(missingHeader(request, headers, revision), undefined);
    assert.equal(disagreeingHeader(request, version, headers), undefined);
    const hasName = method.includes('/') && method !== 'tools/list';
    assert.equal(Object.hasOwn(headers, 'mcp-name'), hasName);
    const changed = { ...headers, 'mcp-name': encodeHeader(other) };
    assert.equal(missingHeader(request, changed, revision), hasName && other !== name ? 'Mcp-Name' : undefined);
    const forged = { ...headers, 'mcp-method': other, 'mcp-name': other };
    assert.equal(disagreeingHeader(request, version, forged), other === method ? undefined : 'Mcp-Method');
    const isSame = !hasName || decodePlainly(other) === name;
    assert.equal(missingHeader(request, forged, revision), isSame ? undefined : 'Mcp-Name');
  },
});

const key = fc.constantFrom('a', 'b', 'properties', '__proto__', 'constructor', 'x-mcp-header', '', 'ü');
const param: fc.Arbitrary<ParamHeader> = record({
  name: fc.constantFrom('A', 'b-c', '__proto__', 'constructor', "!#$%&'*+.^_`|~", 'Region'),
  type: fc.constantFrom('string', 'integer', 'boolean'),
  path: fc.array(key, { minLength: 1, maxLength: 3 }),
});
const value = fc.oneof(text, fc.maxSafeInteger(), fc.double({ noNaN: true }), fc.boolean(), fc.constant(null));

/** An object with this value at the end of this path. */
const nested = (path: readonly string[], inner: unknown): unknown =>
  path.reduceRight<unknown>((value, name) => Object.fromEntries([[name, value]]), inner);

const params = createFuzzer({
  name: 'mirrored parameters: they say what the arguments say; any other is found',
  share: 6,
  cases: fc.tuple(param, value, text),
  check([declared, given, other]) {
    const schema = { properties: {} };
    let at: Record<string, unknown> = schema;
    for (const [index, name] of declared.path.entries()) {
      const isLast = index === declared.path.length - 1;
      const child = isLast ? { type: declared.type, 'x-mcp-header': declared.name } : { properties: {} };
      Object.defineProperty(at['properties'], name, { value: child, enumerable: true });
      at = child;
    }
    assert.deepEqual(readParamHeaders(schema), [declared]);
    const call = read({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { arguments: nested(declared.path, given) },
    });
    const headers = paramHeadersOf([declared], call);
    assert.equal(checkParamHeaders([declared], call, headers), undefined);
    const isMirrored = given !== null && JSON.stringify(given) !== 'null';
    assert.deepEqual(Object.keys(headers), isMirrored ? [`mcp-param-${declared.name.toLowerCase()}`] : []);
    if (!isMirrored) return;
    const changed = checkParamHeaders([declared], call, { [Object.keys(headers)[0] as string]: encodeHeader(other) });
    const isSame = other === String(given) || (typeof given === 'number' && Number(other) === given);
    if (!isSame) assert.deepEqual(changed, { header: `Mcp-Param-${declared.name}` });
  },
});

const schemas = createFuzzer({
  name: 'schemas of tools: any one is read or refused',
  share: 2,
  cases: fc.dictionary(
    fc.constantFrom('properties', 'items', 'anyOf', '$defs', 'x-mcp-header', 'type', '__proto__', 'a'),
    fc.jsonValue({ maxDepth: 6 }),
  ),
  check(schema) {
    const found = readParamHeaders(schema);
    assert.ok(found === undefined || found.every(({ path }) => path.length > 0 && path.length <= 32));
    const names = (found ?? []).map(({ name }) => name.toLowerCase());
    assert.equal(new Set(names).size, names.length);
  },
});

const headerNames = ['authorization', 'x-key', '__proto__', 'constructor', 'cookie'];

const requests = createFuzzer({
  name: 'headers of requests: any value is read without a throw',
  share: 5,
  cases: fc.tuple(text, fc.dictionary(fc.constantFrom(...headerNames, 'connection'), fc.oneof(text, fc.array(text)))),
  seeds: corpus.map((line) => [line, { 'x-key': line, connection: line }] as const),
  check([line, headers]) {
    const { json, sse } = readAccept(line);
    assert.ok(typeof json === 'boolean' && typeof sse === 'boolean');
    if (isJsonContentType(line)) assert.match(line, /^\s*application\/json\s*(?:;|$)/i);
    const found = readForwardedHeaders(headers, headerNames);
    if (found === 'too_large') return;
    let bytes = 0;
    for (const [name, value] of Object.entries(found)) {
      assert.ok(headerNames.includes(name) && headers[name] === value);
      bytes += name.length + value.length;
    }
    assert.ok(bytes <= maxForwardedBytes);
  },
});

export const fuzzers = [values, mirrored, params, schemas, requests];
