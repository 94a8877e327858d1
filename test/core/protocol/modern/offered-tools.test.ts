import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type OfferedTools, offeredTools } from '../../../../src/core/protocol/modern/offered-tools.ts';

const good =
  '{"name":"good","n":12345678901234567890,"inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}';
const odd = '{"name":"odd","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}';
const listed = (...tools: string[]) =>
  Buffer.from(`{"jsonrpc":"2.0", "id":1,"result":{"tools": [${tools.join(' , ')}],"x":1e2}}`);

const offered = async (text: Buffer): Promise<OfferedTools> => (await offeredTools(text)) as OfferedTools;

test('[R9.13] tools whose mirrored parameters break the rules are left out, and no other byte changes', async () => {
  const { text, hidden } = await offered(listed(odd, good, odd, '{"name":"x-mcp-header"}'));
  expect(hidden).toEqual(['odd', 'odd']);
  expect(text.toString()).toBe(
    `{"jsonrpc":"2.0", "id":1,"result":{"tools": [${good},{"name":"x-mcp-header"}],"x":1e2}}`,
  );
  expect((await offered(listed(odd))).text.toString()).toBe('{"jsonrpc":"2.0", "id":1,"result":{"tools": [],"x":1e2}}');
});

test.each([
  ['in a tool itself', odd.replace('{', '{"name":"other",')],
  ['below params', odd.replace('{', '{"params":{"a":1,"a":1},')],
])('[R9.13] a tool is left out also if a key stands twice %s', async (_, tool) => {
  expect(await offered(listed(tool, good))).toEqual({ text: listed(good), hidden: [expect.any(String)] });
});

test.each(['\\u0078-mcp-header', 'x-mcp\\u002dheader', 'x-mcp\\u002Dheader', '\\u0078\\u002dmcp-heade\\u0072'])(
  '[R9.13] an annotation is the same one where it is written %s',
  async (key) => {
    const escaped = (tool: string) => tool.replace('x-mcp-header', key);
    expect(await offered(listed(escaped(odd), escaped(good)))).toEqual({
      text: listed(escaped(good)),
      hidden: ['odd'],
    });
  },
);

test.each([
  ['a list with other escapes', listed('{"name":"\\u0078\\u00e9"}', '{"name":"x-mcp\\u00ddheader"}')],
  ['a list without such tools', listed(good, '{"name":"x"}')],
  ['no list of tools', Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"tools":"x-mcp-header"}}')],
  ['tools that are none', listed('1', '"x-mcp-header"', 'null', '{"inputSchema":"x-mcp-header"}')],
  ['an error', Buffer.from('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x-mcp-header"}}')],
])('%s is the same text', async (_, text) => {
  expect(await offered(text)).toEqual({ text, hidden: [] });
});

test.each([
  ['an object', '{"toString":1}'],
  ['null', 'null'],
  ['a number', '1e400'],
  ['nothing', undefined],
])('[S-01] a tool that breaks the rules and whose name is %s is left out', async (_, name) => {
  const tool = odd.replace('"name":"odd",', name === undefined ? '' : `"name":${name},`);
  expect(await offered(listed(tool, good))).toEqual({ text: listed(good), hidden: [''] });
});

test('[S-01] no more of a name is told than one needs to know it', async () => {
  const [hidden] = (await offered(listed(odd.replace('odd', 'x'.repeat(1_000))))).hidden;
  expect(hidden).toBe('x'.repeat(128));
});

test('[G-03] [P8] a long list of tools is read in several turns, and more tools than the gateway reads are refused', async () => {
  const schema = '{},'.repeat(20_000);
  const large = `{"name":"large","inputSchema":{"anyOf":[${schema}{"x-mcp-header":1}]}}`;
  const tools = Array.from({ length: 15 }, () => large);
  let turns = 0;
  let isDone = false;
  const reading = offered(listed(...tools, good)).finally(() => (isDone = true));
  while (!isDone) {
    turns += 1;
    await nextTurn();
  }
  expect((await reading).hidden).toHaveLength(15);
  expect(turns).toBeGreaterThan(10);
  expect(await offeredTools(listed(odd, ...Array.from({ length: 10_000 }, () => '{}')))).toBe('unreadable');
});

test('[G-03] [P8] no value is built of a schema that is larger than one may be', async () => {
  const tool = `{"name":"large","inputSchema":{"x":"${'x'.repeat(70_000)}","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`;
  expect((await offered(listed(tool, good))).hidden).toEqual(['large']);
});

test('[G-03] a list of more than 1 MiB that escapes other characters is the same text', async () => {
  const text = listed(good, `{"name":"large","description":"${'\\u003c'.repeat(200_000)}","inputSchema":{}}`);
  expect((await offered(text)).text).toBe(text);
});
