import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { initialize } from '../support/http-client.ts';
import { callModern, postModern } from '../support/modern-client.ts';
import { startBehind } from './hostile-server.ts';

const secret = { type: 'object', properties: { plan: { type: 'string', 'x-mcp-header': 'Plan' } } };

/** A modern server whose tools are another client's business: `secret` is one of ada's alone. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()).toString());
  const isAda = request.headers.authorization === 'Bearer ada';
  const results: Record<string, object> = {
    'server/discover': { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } },
    'tools/list': {
      tools: isAda ? [{ name: 'secret', inputSchema: secret }] : [],
      ttlMs: 60_000,
      cacheScope: 'private',
    },
    'tools/call': {
      content: [{ type: 'text', text: `${params.name} ${request.headers['mcp-param-plan'] ?? 'none'}` }],
    },
  };
  const result = { resultType: 'complete', ...results[method] };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

const none = (_: IncomingMessage, response: ServerResponse): void => void response.writeHead(405).end();
const as = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } });
const behind = () =>
  startBehind('http', none, (request, response) => void answer(request, response), {
    ...{ era: 'modern', headers: {}, forwardHeaders: ['Authorization'] },
  });

test("[R3.05] [P11] a client's list of tools, which is private, is neither told to another nor what that is judged by", async () => {
  const { url } = await behind();
  const names = async (token: string): Promise<string[]> =>
    (await postModern(url, 'tools/list', {}, as(token))).json.result.tools.map(({ name }: { name: string }) => name);
  expect(await names('ada')).toEqual(['secret']);
  expect(await names('bob')).toEqual([]);
  const call = (token: string) => callModern(url, 'secret', { plan: 'x' }, as(token));
  // Of ada's tool the gateway knows that a parameter is mirrored; bob would learn that there is one.
  expect((await call('ada')).json.error.data).toMatchObject({ header: 'Mcp-Param-Plan', problem: 'missing' });
  expect((await call('bob')).json.result.content[0].text).toBe('secret none');
  expect(await names('ada')).toEqual(['secret']);
});

test('[R3.05] [P11] nor is what the gateway mirrors for a legacy client', async () => {
  const { url } = await behind();
  const call = async (token: string): Promise<string> => {
    const session = await initialize(url, as(token));
    await session.request('tools/list');
    return (await session.callTool('secret', { plan: 'x' })).content[0].text;
  };
  expect(await call('ada')).toBe('secret x');
  expect(await call('bob')).toBe('secret none');
  expect(await call('ada')).toBe('secret x');
});
