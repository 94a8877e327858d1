import { describe, expect, test } from 'vitest';
import { MirroredParameters } from '../../../src/core/backend/mirrored-parameters.ts';
import { noHeaders } from '../../../src/core/protocol/http/forwarded-headers.ts';

const tool = {
  name: 'go',
  inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } },
};

/** A server whose pages have these cursors, and how often it was asked. */
function listOf(nextCursors: readonly unknown[], answer: object = { result: { tools: [tool] } }) {
  let asked = 0;
  const tools = new MirroredParameters(async () => {
    const nextCursor = nextCursors[asked % nextCursors.length];
    asked += 1;
    const page = 'result' in answer ? { result: { ...(answer.result as object), nextCursor } } : answer;
    return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, ...page }));
  });
  return { tools, asked: () => asked };
}

describe('the list that the gateway reads for the headers of a call', () => {
  test.each([
    ['an empty cursor', [''], 1],
    ['no cursor', [undefined], 1],
    ['null', [null], 1],
    ['the same cursor', ['x'], 2],
    ['two cursors in a circle', ['x', 'y'], 3],
  ])('ends with %s', async (_, cursors, pages) => {
    const { tools, asked } = listOf(cursors);
    expect(await tools.find('other', noHeaders)).toBeUndefined();
    expect(asked()).toBe(pages);
    expect(await tools.find('go', noHeaders)).toMatchObject([{ name: 'Region' }]);
    expect(await tools.find('third', noHeaders)).toBeUndefined();
    expect(asked()).toBe(pages); // the whole list is known
  });

  test.each([
    ['method not found', { error: { code: -32601, message: 'no' } }],
    ['an empty result', { result: {} }],
    ['null for the list', { result: { tools: null } }],
  ])('is empty by %s', async (_, answer) => {
    const { tools, asked } = listOf([undefined], answer);
    expect(await tools.find('go', noHeaders)).toBeUndefined();
    expect(await tools.find('go', noHeaders)).toBeUndefined();
    expect(asked()).toBe(1);
  });
});
