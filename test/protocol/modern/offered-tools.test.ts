import { expect, test } from 'vitest';
import { offeredTools } from '../../../src/protocol/modern/offered-tools.ts';

const good =
  '{"name":"good","n":12345678901234567890,"inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}';
const odd = '{"name":"odd","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}';
const listed = (...tools: string[]) =>
  Buffer.from(`{"jsonrpc":"2.0", "id":1,"result":{"tools": [${tools.join(' , ')}],"x":1e2}}`);

test('[R9.13] tools whose mirrored parameters break the rules are left out, and no other byte changes', () => {
  const { text, hidden } = offeredTools(listed(odd, good, odd, '{"name":"x-mcp-header"}'));
  expect(hidden).toEqual(['odd', 'odd']);
  expect(text.toString()).toBe(
    `{"jsonrpc":"2.0", "id":1,"result":{"tools": [${good},{"name":"x-mcp-header"}],"x":1e2}}`,
  );
  expect(offeredTools(listed(odd)).text.toString()).toBe('{"jsonrpc":"2.0", "id":1,"result":{"tools": [],"x":1e2}}');
});

test.each([
  ['in a tool itself', odd.replace('{', '{"name":"other",')],
  ['below params', odd.replace('{', '{"params":{"a":1,"a":1},')],
])('[R9.13] a tool is left out also if a key stands twice %s', (_, tool) => {
  expect(offeredTools(listed(tool, good))).toEqual({ text: listed(good), hidden: ['odd'] });
});

test.each(['\\u0078-mcp-header', 'x-mcp\\u002dheader', 'x-mcp\\u002Dheader', '\\u0078\\u002dmcp-heade\\u0072'])(
  '[R9.13] an annotation is the same one where it is written %s',
  (key) => {
    const escaped = (tool: string) => tool.replace('x-mcp-header', key);
    expect(offeredTools(listed(escaped(odd), escaped(good)))).toEqual({ text: listed(escaped(good)), hidden: ['odd'] });
  },
);

test.each([
  ['a list with other escapes', listed('{"name":"\\u0078\\u00e9"}', '{"name":"x-mcp\\u00ddheader"}')],
  ['a list without such tools', listed(good, '{"name":"x"}')],
  ['no list of tools', Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"tools":"x-mcp-header"}}')],
  ['tools that are none', listed('1', '"x-mcp-header"', 'null', '{"inputSchema":"x-mcp-header"}')],
  ['an error', Buffer.from('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x-mcp-header"}}')],
])('%s is the same text', (_, text) => {
  expect(offeredTools(text)).toEqual({ text, hidden: [] });
});

test.each([
  ['an object', '{"toString":1}'],
  ['null', 'null'],
  ['a number', '1e400'],
  ['nothing', undefined],
])('[S-01] a tool that breaks the rules and whose name is %s is left out', (_, name) => {
  const tool = odd.replace('"name":"odd",', name === undefined ? '' : `"name":${name},`);
  expect(offeredTools(listed(tool, good))).toEqual({ text: listed(good), hidden: [''] });
});

test('[S-01] no more of a name is told than one needs to know it', () => {
  const [hidden] = offeredTools(listed(odd.replace('odd', 'x'.repeat(1_000)))).hidden;
  expect(hidden).toBe('x'.repeat(128));
});
