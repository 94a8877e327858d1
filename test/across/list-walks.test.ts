import { describe, expect, it } from 'vitest';
import { filterTools } from '../../src/core/auth/scopes/filter-tools.ts';
import { FilterRules } from '../../src/core/backend/filter-rules.ts';
import { readListItems } from '../../src/core/protocol/list-page.ts';
import { findRemoval, removeFromEach } from '../../src/core/protocol/message/edit-members.ts';
import { offeredTools } from '../../src/core/protocol/modern/offered-tools.ts';
import { type FilterOutcome, filterList } from '../../src/features/filters/edit-tools.ts';

/**
 * Each path that changes, filters or merges a list of a server has the same limits (P8). Beyond them it says so, instead
 * of a walk over millions of items in one turn of the event loop.
 */
const tools = (count: number, tool: string): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{"tools":[${Array.from({ length: count }, () => tool).join()}]}}`);

const nested = (values: number, last = '0'): string =>
  `{"name":"t","inputSchema":{"a":[${'0,'.repeat(values - 1)}${last}]}}`;

const reasonIn = (text: Buffer): string => JSON.parse(text.toString()).error?.data?.reason ?? 'read';

const removed = (text: Buffer): string =>
  removeFromEach(text, ['result', 'tools'], (each) => findRemoval(each, ['execution'])) === undefined
    ? 'refused'
    : 'read';

const filtered = async (text: Buffer, rules: FilterRules): Promise<string> => {
  const outcome: FilterOutcome = await filterList(text, 'tools', rules);
  return typeof outcome === 'string' ? outcome : 'read';
};

const changes = new FilterRules([], ['x*'], { t: { arguments: { a: 1, b: 2, c: 3 } } });

const paths: Readonly<Record<string, (text: Buffer) => string | Promise<string>>> = {
  'a list for a client of the other era': removed,
  'a list that tool scopes filter': (text) => reasonIn(filterTools(text, () => true)),
  'a list that is filtered': (text) => filtered(text, new FilterRules([], ['x*'])),
  'a list whose tools are changed': (text) => filtered(text, changes),
  'a list of a server of a view': (text) => {
    const items = readListItems(text, 'tools');
    return typeof items === 'string' ? items : 'read';
  },
  'tools that may mirror parameters': async (text) => {
    const offered = await offeredTools(text);
    return typeof offered === 'string' ? offered : 'read';
  },
};
const refused = expect.stringMatching(/^(?:unreadable|refused|list_unreadable)$/);

describe.each(Object.entries(paths))('[G-06] [G-08] [P8] %s', (_, walk) => {
  const tool = '{"name":"t","x-mcp-header":1}';

  it('may have 10,000 items', async () => {
    expect(await walk(tools(10_000, tool))).toBe('read');
  });

  it.each([10_001, 250_000])('is refused with %d items', async (count) => {
    expect(await walk(tools(count, tool))).toEqual(refused);
  });

  it('is refused with 3.9 million items', async () => {
    const text = tools(3_900_000, '0').toString('latin1').replace(']}}', ',"x-mcp-header"]}}');
    expect(await walk(Buffer.from(text, 'latin1'))).toEqual(refused);
  });

  it('is refused if its items have too many values to walk over in one turn', async () => {
    expect(await walk(tools(2, nested(1_900_000, '"x-mcp-header"')))).toEqual(refused);
  });

  it('is read with one large item', async () => {
    expect(await walk(tools(1, nested(100_000)))).toBe('read');
  });
});

describe('[G-07] [P8] `inputSchema.required` of a tool with fixed arguments', () => {
  const requiring = (count: number) =>
    tools(1, `{"name":"t","inputSchema":{"properties":{"a":{}},"required":["a"${',"z"'.repeat(count - 1)}]}}`);
  const lengthOf = async (count: number): Promise<number> => {
    const outcome = await filterList(requiring(count), 'tools', changes);
    if (typeof outcome === 'string') throw new Error(outcome);
    return JSON.parse(outcome.text.toString()).result.tools[0].inputSchema.required.length;
  };

  it('loses the fixed argument, and stays as it is beyond 10,000 entries', async () => {
    expect(await lengthOf(10_000)).toBe(9_999);
    expect(await lengthOf(10_001)).toBe(10_001);
  });
});
