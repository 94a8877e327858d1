import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey } from '../../src/app/commands/key-command.ts';
import { everythingFixture, modernFixture } from '../support/gateway.ts';
import { initialize, type Message, open, post } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, postModern } from '../support/modern-client.ts';
import { connectOld } from '../support/old-client.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';

const names = ['writer', 'reader', 'root'] as const;
type Name = (typeof names)[number];
/** Two keys of one user, so that sessions and kept lists are shared; and a key that may do everything. */
const keys = Object.fromEntries(names.map((name) => [name, makeKey(name === 'root' ? 'root' : 'ada')])) as Record<
  Name,
  ReturnType<typeof makeKey>
>;
const scopes = { writer: ['use', 'write'], reader: ['use'] };
const as = (name: Name) => ({ headers: { Authorization: `Bearer ${keys[name].key}` } });

let folder: string;
let filtering: LocalGateway;
let plain: LocalGateway;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gangway-lists-'));
  const entry = ([command, ...args]: readonly string[], tools: object) => ({
    ...{ command, args, scopes: { required: ['use'], tools } },
    ...{ sse: true, ws: true, lists: { ttl: '1m' } },
  });
  const mcpServers = {
    legacy: entry(everythingFixture, { 'echo*': ['write'] }),
    modern: entry(modernFixture, { 'echo*': ['write'] }),
  };
  const views = {
    both: { servers: ['legacy', 'modern'] },
    renaming: { servers: ['legacy'], tools: { legacy__echo: { name: 'say' } } },
  };
  await writeFile(join(folder, 'config.json'), JSON.stringify({ mcpServers, views }));
  const entries = names.map((name) => ({
    ...JSON.parse(keys[name].entry),
    ...(name !== 'root' && { scopes: scopes[name] }),
  }));
  await writeFile(join(folder, 'keys.json'), JSON.stringify(entries));
  const args = ['--config', join(folder, 'config.json'), '--api-keys-file', join(folder, 'keys.json')];
  filtering = await startLocalGateway({ args: [...args, '--auth.filterLists'], isStoppedWithTest: false });
  plain = await startLocalGateway({ args, isStoppedWithTest: false });
});
afterAll(async () => {
  await Promise.all([filtering.stop(), plain.stop()]);
  await rm(folder, { recursive: true });
});

const urlOf = (server: string, gateway = filtering): string => `${gateway.baseUrl}/${server}/mcp`;
const namesIn = ({ result }: Message): string[] => result.tools.map(({ name }: { name: string }) => name);

/** How each kind of client lists the tools. */
const kinds: Record<string, (server: string, name: Name, gateway?: LocalGateway) => Promise<string[]>> = {
  'a session': async (server, name, gateway) => {
    const session = await initialize(urlOf(server, gateway), as(name));
    return namesIn((await session.request('tools/list')).messages.at(-1) as Message);
  },
  'a 2026-07-28 client': async (server, name, gateway) =>
    namesIn((await postModern(urlOf(server, gateway), 'tools/list', {}, as(name))).messages.at(-1) as Message),
  'a client of HTTP+SSE': async (server, name, gateway = filtering) => {
    const client = await connectOld(gateway.baseUrl, { prefix: `/${server}`, ...as(name) });
    const answer = await client.request('tools/list');
    client.drop();
    return namesIn(answer);
  },
  'a WebSocket client': async (server, name, gateway) => {
    const client = await connectWebSocket(webSocketUrlOf(urlOf(server, gateway)), as(name));
    await client.initialize();
    return namesIn(await client.request('tools/list'));
  },
};

describe.each(Object.entries(kinds))('%s', (_kind, list) => {
  test.each([
    ['legacy', 'echo'],
    ['modern', 'echo'],
    ['both', 'legacy__echo'],
    ['renaming', 'say'],
  ])('at %s sees only the tools that its key may call', async (server, tool) => {
    expect(await list(server, 'writer')).toContain(tool);
    const seen = await list(server, 'reader');
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.filter((name) => name.includes('echo') || name === tool)).toEqual([]);
    expect(await list(server, 'root')).toContain(tool);
    expect(await list(server, 'writer')).toContain(tool);
  });

  test('sees all tools by default, so that it can ask for their scopes', async () => {
    expect(await list('legacy', 'reader', plain)).toContain('echo');
  });
});

test('a filtered list is private for caches', async () => {
  const { json } = await postModern(urlOf('legacy'), 'tools/list', {}, as('reader'));
  expect(json.result).toMatchObject({ cacheScope: 'private' });
});

test('a list that began with more scopes is filtered when fewer resume its stream', async () => {
  const session = await initialize(urlOf('legacy'), as('writer'));
  const request = { jsonrpc: '2.0', id: 'long', method: 'tools/list' };
  const first = await session.send(request, { accept: 'text/event-stream', ...as('writer').headers });
  const { events } = await first.answer();
  const id = events.find(({ id: each }) => each !== undefined)?.id;
  expect(id).toBeDefined();
  const headers = {
    ...as('reader').headers,
    'mcp-session-id': session.id,
    'last-event-id': id,
    accept: 'text/event-stream',
  };
  const { messages } = await (await open(urlOf('legacy'), { method: 'GET', headers })).answer();
  const [answer] = messages;
  expect(namesIn(answer)).not.toContain('echo');
});

describe('a key without the scope of a tool, over a view', () => {
  const call = {
    jsonrpc: '2.0',
    id: 7,
    method: 'tools/call',
    params: { name: 'legacy__echo', arguments: { text: 'x' } },
  };

  test('cannot call the tool by the name that a view gives it', async () => {
    const session = await initialize(urlOf('renaming'), as('reader'));
    const refused = await session.request('tools/call', { name: 'say', arguments: { text: 'x' } });
    expect(refused).toMatchObject({ status: 403, json: { error: { data: { reason: 'insufficient_scope' } } } });
    const writer = await initialize(urlOf('renaming'), as('writer'));
    expect((await writer.callTool('say', { text: 'x' })).content[0].text).toBe('x');
  });

  test('cannot call the tool by its name in the view, in a batch, or in the modern era', async () => {
    const session = await initialize(urlOf('both'), { ...as('reader'), version: '2025-03-26' });
    const single = await session.request('tools/call', call.params);
    expect(single).toMatchObject({ status: 403, json: { error: { data: { reason: 'insufficient_scope' } } } });
    const batch = [{ jsonrpc: '2.0', id: 8, method: 'ping' }, call];
    expect((await post(urlOf('both'), batch, { ...as('reader').headers, 'mcp-session-id': session.id })).status).toBe(
      403,
    );
    expect((await callModern(urlOf('both'), 'legacy__echo', { text: 'x' }, as('reader'))).status).toBe(403);
  });

  test('reaches nothing by the name that the tool has at its server', async () => {
    const session = await initialize(urlOf('both'), as('reader'));
    const { json } = await session.request('tools/call', { name: 'echo', arguments: { text: 'x' } });
    expect(json.error.data.reason).toBe('unknown_tool');
  });
});
