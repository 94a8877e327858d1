import { expect, it } from 'vitest';
import { pathOf } from '../../../src/protocol/http/request-header.ts';

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
