import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { initialize, post } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { beginStream, expectNoSecret, type Handler, initializeBody, startBehind } from './hostile-server.ts';

const none: Handler = (_, response) => void response.writeHead(405).end();
const json = (response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void =>
  void response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
const result = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } };

const readMessage = async (request: IncomingMessage) => JSON.parse(Buffer.concat(await request.toArray()).toString());

/** Answers what opens a session, with a session id that is nobody's to know; false for anything else. */
function greets(message: { id?: unknown; method?: string }, response: ServerResponse, sessionId = 'upstream-secret') {
  if (message.method === 'initialize') {
    json(response, { jsonrpc: '2.0', id: message.id, result }, { 'mcp-session-id': sessionId });
  } else if (message.id === undefined) response.writeHead(202).end();
  else return false;
  return true;
}

test.each<[string, Handler, number, string]>([
  ['5xx', (_, r) => void r.writeHead(503).end('upstream-secret'), 502, 'server_start_failed'],
  ['401 [J-08]', (_, r) => void r.writeHead(401).end(), 502, 'server_unauthorized'],
  ['403 [J-08]', (_, r) => void r.writeHead(403).end(), 502, 'server_unauthorized'],
  ['404, and no stream either', (_, r) => void r.writeHead(404).end(), 502, 'server_start_failed'],
  [
    'a redirect',
    (_, r) => void r.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
    502,
    'server_start_failed',
  ],
  ['HTML', (_, r) => void r.writeHead(200, { 'content-type': 'text/html' }).end('<p>'), 502, 'server_start_failed'],
  ['a connection that breaks', (_, r) => void r.destroy(), 502, 'server_start_failed'],
  ['202', (_, r) => void r.writeHead(202).end(), 502, 'server_start_failed'],
  ['nothing', () => undefined, 504, 'server_start_timeout'],
  ['a stream without an answer', (_, r) => void beginStream(r).write(': hi\n\n'), 504, 'server_start_timeout'],
])('[F28] [S11] [R8.07] a server that answers initialize with %s', async (_, onPost, status, reason) => {
  const { gateway } = await startBehind('auto', none, onPost);
  const answer = await post(`${gateway.baseUrl}/hostile/mcp`, initializeBody);
  expect([answer.status, answer.json.error.data.reason]).toEqual([status, reason]);
  expectNoSecret(gateway, answer.text);
});

test('[F28] [S11] [P3] later: each call ends in an error that says what is known, and the session goes on', async () => {
  const { gateway } = await startBehind('http', none, async (request, response) => {
    const message = await readMessage(request);
    if (greets(message, response)) return;
    const name = message.params?.name;
    if (name === 'refused') response.writeHead(500).end('upstream-secret');
    else if (name === 'dropped') response.destroy();
    else if (name === 'unanswered') response.writeHead(202).end();
    else if (name === 'cut') beginStream(response).write('data: {"jsonrpc"', () => response.destroy());
    else if (name === 'foreign') json(response, { jsonrpc: '2.0', id: 'of nobody', result: {} });
    else json(response, { jsonrpc: '2.0', id: message.id, result: {} });
  });
  const session = await initialize(`${gateway.baseUrl}/hostile/mcp`);
  // As a status or in band: on a slow machine the stream of a call begins before its error.
  const reasonOf = async (name: string) => {
    const { messages } = await session.request('tools/call', { name, arguments: {} });
    return messages.find(({ error }) => error)?.error.data.reason;
  };
  expect(await reasonOf('refused')).toBe('server_refused');
  expect(await reasonOf('dropped')).toBe('server_unreachable');
  expect(await reasonOf('unanswered')).toBe('server_refused');
  expect(await reasonOf('cut')).toBe('server_unreachable');
  expect(await reasonOf('foreign')).toBe('server_refused');
  expect(await reasonOf('fine')).toBeUndefined();
  expect(gateway.logs().filter(({ msg }) => msg === 'server ended' || msg === 'session ended')).toEqual([]);
  expectNoSecret(gateway);
});

test('[F28] [P3] what only reads is run again when its connection breaks, once', async () => {
  let lists = 0;
  const { gateway } = await startBehind('http', none, async (request, response) => {
    const message = await readMessage(request);
    if (greets(message, response)) return;
    lists += 1;
    if (message.params?.cursor === 'always' || lists === 1) return void response.destroy();
    json(response, { jsonrpc: '2.0', id: message.id, result: { tools: [] } });
  });
  const session = await initialize(`${gateway.baseUrl}/hostile/mcp`);
  expect((await session.request('tools/list')).messages.at(-1)?.result).toEqual({ tools: [] });
  expect(lists).toBe(2);
  const { messages } = await session.request('tools/list', { cursor: 'always' });
  expect(messages.at(-1)?.error.data.reason).toBe('server_unreachable');
  expect(lists).toBe(4);
});

test('[F28] [P3] a session that the server forgot is begun anew, and the call that found out is run there', async () => {
  let sessions = 0;
  const calls: string[] = [];
  const { gateway } = await startBehind('http', none, async (request, response) => {
    const message = await readMessage(request);
    if (message.method === 'initialize') sessions += 1;
    const current = `upstream-secret-${sessions}`;
    const id = request.headers['mcp-session-id'];
    if (id !== undefined && id !== current) return void response.writeHead(404).end();
    if (greets(message, response, current)) return;
    calls.push(String(id));
    json(response, { jsonrpc: '2.0', id: message.id, result: { content: [] } });
  });
  const session = await initialize(`${gateway.baseUrl}/hostile/mcp`);
  await session.callTool('x');
  sessions += 1; // a restart: nobody has this session
  expect(await session.callTool('x')).toEqual({ content: [] });
  expect(calls).toEqual(['upstream-secret-1', 'upstream-secret-3']);
  await waitFor(() => gateway.logs().some(({ msg }) => msg === 'server restored'), { what: 'the restore to be told' });
  expectNoSecret(gateway);
});

test('[R8.06] [S16] initialize passes unchanged, and no header of the client passes', async () => {
  const requests: IncomingMessage[] = [];
  const texts: string[] = [];
  const { gateway } = await startBehind('http', none, async (request, response) => {
    requests.push(request);
    const text = Buffer.concat(await request.toArray()).toString();
    texts.push(text);
    greets(JSON.parse(text), response);
  });
  const body = JSON.stringify(initializeBody).replace('"1"', '"1", "n": 12345678901234567890');
  const headers = { Authorization: 'Bearer of the client', Cookie: 'a=b', 'Last-Event-ID': '1', 'X-Own': 'x' };
  const answer = await post(`${gateway.baseUrl}/hostile/mcp`, body, headers);
  expect([answer.json.result.protocolVersion, texts]).toEqual(['2025-11-25', [body]]);
  const allowed = [
    'accept',
    'accept-encoding',
    'authorization',
    'connection',
    'content-length',
    'content-type',
    'host',
  ];
  expect(Object.keys(requests[0]?.headers ?? {}).filter((name) => !allowed.includes(name))).toEqual([]);
  expect(requests[0]?.headers.authorization).toBe('Bearer header-secret');
  expect(answer.headers['mcp-session-id']).not.toContain('secret');
  expectNoSecret(gateway, answer.text);
});
