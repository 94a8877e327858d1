import { describe, expect, it } from 'vitest';
import { newestModern } from '../../../../src/core/protocol/known-revisions.ts';
import {
  decodeHeader,
  disagreeingHeader,
  encodeHeader,
  mirroredHeaders,
  missingHeader,
} from '../../../../src/core/protocol/modern/mirrored-headers.ts';
import {
  checkParamHeaders,
  paramHeadersOf,
  readParamHeaders,
} from '../../../../src/core/protocol/modern/param-headers.ts';
import { read } from './read.ts';

const request = (method: string, params: object = {}) => read({ jsonrpc: '2.0', id: 1, method, params });
const standardHeaders = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' };
const base64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`;

describe('the values of mirrored headers', () => {
  it.each([
    ['us-west1', 'us-west1'],
    ['', ''],
    ['a b\tc', 'a b\tc'],
    ['=?base64?SGVsbG8sIOS4lueVjA==?=', 'Hello, 世界'],
    ['=?base64?IHBhZGRlZCA=?=', ' padded '],
    ['=?base64?bGluZTEKbGluZTI=?=', 'line1\nline2'],
    ['=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=', '=?base64?literal?='],
    ['=?base64??=', ''],
    ['=?BASE64?YQ==?=', '=?BASE64?YQ==?='],
    ['=?base64?YQ==', '=?base64?YQ=='],
    ['=?base64?=', '=?base64?='],
    ['=?base64?YQ?=', undefined],
    ['=?base64?YR==?=', undefined],
    ['=?base64?Y Q==?=', undefined],
    ['=?base64?%%%%?=', undefined],
    ['=?base64?_-8=?=', undefined],
    ['=?base64?/w==?=', undefined],
    ['caf\u00e9', undefined],
    ['a\u0000', undefined],
  ])('[R2.14] %j stands for %j', (value, text) => {
    expect(decodeHeader(value)).toBe(text);
  });

  it.each([
    ['us-west1', 'us-west1'],
    ['', ''],
    ['a b\tc', 'a b\tc'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['\tx', '=?base64?CXg=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['a\r\nEvil: 1', '=?base64?YQ0KRXZpbDogMQ==?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
    ['=?base64?x', '=?base64?x'],
    ['=?base64?=', '=?base64?='],
  ])('[R9.13] %j is sent as %j, and stands for itself', (text, value) => {
    expect(encodeHeader(text)).toBe(value);
    expect(decodeHeader(value)).toBe(text);
  });
});

describe('the mirrored headers of a request', () => {
  const call = request('tools/call', { name: 'tool' });
  const good = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'tool' };

  it('agree, or are not there', () => {
    expect(disagreeingHeader(call, '2026-07-28', good)).toBeUndefined();
    expect(disagreeingHeader(call, '2026-07-28', {})).toBeUndefined();
    expect(missingHeader(call, good, newestModern)).toBeUndefined();
  });

  it.each([
    ['[R2.11] another version', { ...good, 'mcp-protocol-version': '2025-11-25' }, 'MCP-Protocol-Version'],
    ['[R2.12] another method', { ...good, 'mcp-method': 'tools/list' }, 'Mcp-Method'],
    ['[R2.12] a method in another case', { ...good, 'mcp-method': 'Tools/Call' }, 'Mcp-Method'],
  ])('%s disagrees', (_, headers, header) => {
    expect(disagreeingHeader(call, '2026-07-28', headers)).toBe(header);
  });

  it.each([
    ['[R2.11] no version', { 'mcp-method': 'tools/call', 'mcp-name': 'tool' }, 'MCP-Protocol-Version'],
    ['[R2.12] no method', { 'mcp-protocol-version': '2026-07-28', 'mcp-name': 'tool' }, 'Mcp-Method'],
    ['[R2.13] no name', { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' }, 'Mcp-Name'],
    ['[R2.13] another name', { ...good, 'mcp-name': 'Tool' }, 'Mcp-Name'],
    ['[R2.14] a name in bad base64', { ...good, 'mcp-name': '=?base64?dG9vbA?=' }, 'Mcp-Name'],
    ['[R2.13] two names', { ...good, 'mcp-name': 'tool, tool' }, 'Mcp-Name'],
  ])('%s is refused', (_, headers, header) => {
    expect(missingHeader(call, headers, newestModern)).toBe(header);
  });

  it.each([
    ['tools/call', { name: 'wörld' }, base64('wörld')],
    ['prompts/get', { name: 'p' }, 'p'],
    ['resources/read', { uri: 'file:///a b' }, 'file:///a b'],
    ['tasks/get', { taskId: 't' }, 't'],
    ['tasks/update', { taskId: 't' }, 't'],
    ['tasks/cancel', { taskId: 't' }, 't'],
    ['tools/call', { name: '' }, ''],
  ])('[R2.13] [R2.14] %s of %j has the name %s', (method, params, name) => {
    const headers = { ...good, 'mcp-method': method, 'mcp-name': name };
    expect(missingHeader(request(method, params), headers, newestModern)).toBeUndefined();
    expect(missingHeader(request(method, params), { ...headers, 'mcp-name': 'x' }, newestModern)).toBe('Mcp-Name');
    // Common clients of tasks leave the header out.
    const withoutName = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method };
    const lacking = method.startsWith('tasks/') ? undefined : 'Mcp-Name';
    expect(missingHeader(request(method, params), withoutName, newestModern)).toBe(lacking);
  });

  it.each([
    ['a method without a name', request('tools/list', { name: 'x' })],
    ['a call that names no tool, which the server refuses', request('tools/call')],
    ['a call whose name is no text', request('tools/call', { name: 1 })],
  ])('none is asked for: %s', (_, message) => {
    expect(missingHeader(message, { ...good, 'mcp-name': undefined }, newestModern)).toBeUndefined();
  });

  it.each([
    ['tools/call', { name: 'wörld' }],
    ['prompts/get', { name: 'p' }],
    ['resources/read', { uri: 'file:///a\nb' }],
    ['tools/list', { name: 'x' }],
    ['a\r\nb', {}],
  ])('[R9.13] a client makes those that its %j needs', (method, params) => {
    const message = request(method, params);
    const headers = mirroredHeaders(message, newestModern);
    expect(headers['mcp-protocol-version']).toBe('2026-07-28');
    expect(decodeHeader(headers['mcp-method'])).toBe(method);
    expect(missingHeader(message, headers, newestModern)).toBeUndefined();
    expect('mcp-name' in headers).toBe(method.includes('/') && method !== 'tools/list');
  });
});

describe('parameters that are mirrored', () => {
  const schema = {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      deep: { type: 'object', properties: { level: { type: 'integer', 'x-mcp-header': 'Level' } } },
      dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
      'x-mcp-header': { type: 'string' },
      other: { type: 'string' },
    },
  };
  const declared = readParamHeaders(schema) ?? [];
  const check = (text: string, headers: Record<string, string>) =>
    checkParamHeaders(
      declared,
      read(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":${text}}}`),
      headers,
    );

  it('are found along `properties`', () => {
    expect([...declared].sort((a, b) => a.name.localeCompare(b.name))).toEqual([
      { name: 'Dry', type: 'boolean', path: ['dry'] },
      { name: 'Level', type: 'integer', path: ['deep', 'level'] },
      { name: 'Region', type: 'string', path: ['region'] },
    ]);
  });

  it.each([
    ['an empty name', { a: { type: 'string', 'x-mcp-header': '' } }],
    ['a name that is no token', { a: { type: 'string', 'x-mcp-header': 'a b' } }],
    ['a line break in the name', { a: { type: 'string', 'x-mcp-header': 'a\r\nb' } }],
    ['a name that is no text', { a: { type: 'string', 'x-mcp-header': 1 } }],
    ['the same name twice', { a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } }],
    ['a number', { a: { type: 'number', 'x-mcp-header': 'A' } }],
    ['an object', { a: { type: 'object', 'x-mcp-header': 'A' } }],
    ['no type', { a: { 'x-mcp-header': 'A' } }],
    ['below items', { a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } }],
    ['below anyOf', { a: { anyOf: [{ properties: { b: { type: 'string', 'x-mcp-header': 'A' } } }] } }],
    ['below $defs', { a: { $defs: { b: { type: 'string', 'x-mcp-header': 'A' } } } }],
  ])('[R2.18] a schema with %s breaks the rules', (_, properties) => {
    const fine = { z: { type: 'string', 'x-mcp-header': 'Z' } };
    expect(readParamHeaders({ type: 'object', properties: { ...fine, ...properties } })).toBeUndefined();
  });

  it.each([undefined, null, 1, 'x', [], { properties: 7 }, { properties: null }, { properties: { a: null } }])(
    'the schema %j asks for none',
    (value) => {
      expect(readParamHeaders(value)).toEqual([]);
    },
  );

  it('a schema of any depth is read, one with very many parts is not looked through', () => {
    const nested = (levels: number) => {
      let schema: object = { type: 'string', 'x-mcp-header': 'Deep' };
      for (let i = 0; i < levels; i++) schema = { properties: { a: schema } };
      return schema;
    };
    expect(readParamHeaders(nested(32))).toHaveLength(1);
    expect(readParamHeaders(nested(33))).toBeUndefined();
    expect(readParamHeaders(nested(5_000))).toBeUndefined();
    const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`p${i}`, {}]));
    expect(readParamHeaders({ properties: { ...many, a: { type: 'string', 'x-mcp-header': 'A' } } })).toBeUndefined();
  });

  it.each([
    ['{"region":"us"}', { 'mcp-param-region': 'us' }],
    ['{"region":"ü"}', { 'mcp-param-region': base64('ü') }],
    ['{"region":"\\u0075s"}', { 'mcp-param-region': 'us' }],
    ['{"deep":{"level":42}}', { 'mcp-param-level': '42.0' }],
    ['{"deep":{"level":42.0}}', { 'mcp-param-level': '42' }],
    ['{"deep":{"level":-7}}', { 'mcp-param-level': '-7' }],
    ['{"dry":false}', { 'mcp-param-dry': 'false' }],
    ['{"region":null}', {}],
    ['{}', {}],
    ['{"other":"x"}', { 'mcp-param-other': 'y' }],
    ['{"region":{"a":1}}', {}],
    ['[]', {}],
    ['{"deep":{"level":12345678901234567890}}', { 'mcp-param-level': '12345678901234567890' }],
  ])('[R2.16] [R2.17] %s passes with %j', (text, headers) => {
    expect(check(text, headers)).toBeUndefined();
  });

  it.each([
    ['{"region":"us"}', {}, 'Mcp-Param-Region'],
    ['{"region":"us"}', { 'mcp-param-region': 'US' }, 'Mcp-Param-Region'],
    ['{"region":"us"}', { 'mcp-param-region': '=?base64?dXM?=' }, 'Mcp-Param-Region'],
    ['{"deep":{"level":42}}', { 'mcp-param-level': '0x2a' }, 'Mcp-Param-Level'],
    ['{"deep":{"level":42}}', { 'mcp-param-level': '43' }, 'Mcp-Param-Level'],
    ['{"deep":{"level":12345678901234567890}}', { 'mcp-param-level': '12345678901234567891' }, 'Mcp-Param-Level'],
    ['{"dry":false}', { 'mcp-param-dry': 'False' }, 'Mcp-Param-Dry'],
  ])('[R2.16] %s is refused with %j', (text, headers, header) => {
    expect(check(text, headers)).toEqual({ header });
  });

  it.each(['{"region":"us","region":"eu"}', '{"deep":{"level":1,"level":2}}', '{"deep":{"level":1,"\\u006cevel":2}}'])(
    '[R2.16] a key twice on the way to a value is refused: %s',
    (text) => {
      expect(check(text, { 'mcp-param-region': 'us', 'mcp-param-level': '1' })).toBe('duplicate_key');
    },
  );

  it.each(['{"region":"us","Region":"eu"}', '{"REGION":"eu"}', '{"Deep":{"level":2},"deep":{"level":1}}'])(
    '[S-03] a key in another case on the way to a value is refused: %s',
    (text) => {
      expect(check(text, { 'mcp-param-region': 'us', 'mcp-param-level': '1' })).toBe('duplicate_key');
    },
  );

  it('[S-11] a value is compared however many members stand beside it', () => {
    const others = Array.from({ length: 150_000 }, (_, index) => `"k${index}":0`).join();
    const headers = { 'mcp-param-region': 'public' };
    expect(check(`{"region":"secret",${others}}`, headers)).toEqual({ header: 'Mcp-Param-Region' });
    expect(check(`{"region":"public",${others},"region":"secret"}`, headers)).toBe('duplicate_key');
    expect(check(`{${others},"region":"public"}`, headers)).toBeUndefined();
  });

  it('[S-06] a string that is longer than any header is refused, also where it is built of nothing', () => {
    const long = 'x'.repeat(64 * 1024 + 1);
    expect(check(`{"region":"${long}"}`, { 'mcp-param-region': 'us' })).toEqual({ header: 'Mcp-Param-Region' });
    expect(missingHeader(request('tools/call', { name: long }), standardHeaders, newestModern)).toBe('Mcp-Name');
  });

  it.each([
    ['{"region":"us","deep":{"level":42.0},"dry":false}', { region: 'us', level: '42', dry: 'false' }],
    ['{"region":" ü","deep":{"level":-7}}', { region: base64(' ü'), level: '-7' }],
    ['{"deep":{"level":12345678901234567890}}', { level: '12345678901234567890' }],
    ['{"region":null,"dry":{}}', {}],
    ['{"region":"us","region":"eu"}', {}],
    ['[]', {}],
  ])('[R9.13] a client sends %s with %j', (text, expected) => {
    const message = read(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":${text}}}`);
    const headers = paramHeadersOf(declared, message);
    expect(headers).toEqual(Object.fromEntries(Object.entries(expected).map(([k, v]) => [`mcp-param-${k}`, v])));
    if (!text.includes('"region":"us","region"')) expect(checkParamHeaders(declared, message, headers)).toBeUndefined();
  });
});
