import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { givenRequestId, headerOf, pathOf } from '../../../../src/core/protocol/http/request-header.ts';

it.each([
  ['/mcp', '/mcp'],
  ['/mcp?', '/mcp'],
  ['/mcp?a=1?b', '/mcp'],
  ['/x/../mcp', '/x/../mcp'],
  ['?a', ''],
  ['', ''],
])('the path of the target %j is %j, unchanged', (target, path) => {
  expect(pathOf(target)).toBe(path);
});

it('a header is its text, or undefined', () => {
  const incoming = { headers: { host: 'a.example' } } as IncomingMessage;
  expect(headerOf(incoming, 'host')).toBe('a.example');
  expect(headerOf(incoming, 'origin')).toBeUndefined();
});

it.each([['0123456789abcdefABCDEF0123456789'], ['0f8fad5b-d9cb-469f-a165-70867728950e']])(
  'the id %s of a proxy is taken over',
  (id) => {
    expect(givenRequestId(id)).toBe(id);
  },
);

it.each([
  ['a session id', 'gw1.0f8fad5b-d9cb-469f-a165-70867728950e'],
  ['a digit too many', '0123456789abcdef0123456789abcdef0'],
  ['a digit too few', '0123456789abcdef0123456789abcde'],
  ['another letter', '0123456789abcdef0123456789abcdeg'],
  ['a line break', '0123456789abcdef0123456789abcdef\n'],
  ['two headers', ['0123456789abcdef0123456789abcdef']],
  ['no header', undefined],
])('[P12] %s is no id of a proxy', (_, header) => {
  expect(givenRequestId(header)).toBeUndefined();
});
