import { describe, expect, it } from 'vitest';
import { GroupTools, type ToolListOwner } from '../../../../src/features/eras/modern-on-legacy/group-tools.ts';
import { call, readRequest } from '../modern/shared-fixture.ts';

const tool = (header?: string) => ({
  name: 'one',
  inputSchema: { type: 'object', properties: { a: { type: 'string', ...(header && { 'x-mcp-header': header }) } } },
});
const list = (...tools: unknown[]) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools } }));
const one = readRequest(call(1, 'tools/call', { name: 'one', arguments: { a: 'x' } }));
const of = (subject: string): ToolListOwner => ({
  owner: { issuer: 'i', subject, client: 'c' },
  forwarded: undefined,
});

/** A legacy server with this list. */
function server(answer: Buffer | undefined) {
  const asked: string[] = [];
  const tools = new GroupTools(async ({ owner }) => {
    asked.push(owner.subject);
    return answer;
  });
  return { tools, asked };
}

describe('[J-04] the check of mirrored parameters at a legacy server', () => {
  it('fetches no tools if neither a call nor a list mirrors a parameter', () => {
    const { tools, asked } = server(list(tool('A')));
    tools.learn(list(tool()), of('alice'));
    expect(tools.check(one, { 'mcp-name': 'one' }, of('alice'))).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('fetches the tools of each principal whose call mirrors a parameter', async () => {
    const { tools, asked } = server(list(tool('A')));
    expect(await tools.check(one, { 'mcp-param-a': 'y' }, of('alice'))).toEqual({ header: 'Mcp-Param-A' });
    expect(tools.check(one, { 'mcp-param-a': 'x' }, of('alice'))).toBeUndefined();
    expect(tools.check(one, {}, of('bob'))).toBeUndefined();
    expect(await tools.check(one, { 'mcp-param-a': 'y' }, of('bob'))).toEqual({ header: 'Mcp-Param-A' });
    expect(asked).toEqual(['alice', 'bob']);
  });

  it('learns tools from passing lists, and forgets them with the lists', () => {
    const { tools, asked } = server(undefined);
    tools.learn(list(tool('A')), of('alice'));
    expect(tools.check(one, {}, of('alice'))).toEqual({ header: 'Mcp-Param-A' });
    tools.learn(list(tool()), of('alice'));
    expect(tools.check(one, {}, of('alice'))).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('[P8] forgets the tools of too many principals', () => {
    const { tools } = server(undefined);
    for (let n = 0; n <= 100; n++) tools.learn(list(tool('A')), of(`${n}`));
    expect(tools.check(one, {}, of('0'))).toBeUndefined();
    expect(tools.check(one, {}, of('100'))).toEqual({ header: 'Mcp-Param-A' });
  });

  it('lets calls pass if no list is available', async () => {
    const { tools } = server(undefined);
    expect(await tools.check(one, { 'mcp-param-a': 'y' }, of('alice'))).toBeUndefined();
  });
});
