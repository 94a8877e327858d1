// Servers that ask something before they answer `initialize`, and answer it only after that.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { initialize, type Message, open } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { writeViewFile } from '../support/view-file.ts';
import { callingClients } from './calling-clients.ts';
import {
  answerTo,
  type PlainServer,
  type StartPlain,
  startSse,
  startStreamable,
  startTcp,
  startWebSocket,
  type Talk,
} from './plain-servers.ts';

/** Answers `initialize` once its own request is answered. */
const askingFirst = (method: string) => (): Talk => {
  let opening: Message;
  return (message, send) => {
    if (message.method === 'initialize') {
      opening = message;
      send({ jsonrpc: '2.0', id: 'early', method });
    } else if (message.id === 'early') send(answerTo(opening) as object);
    else if (message.id !== undefined) send(answerTo(message) as object);
  };
};

describe.each<[string, StartPlain]>([
  ['TCP', startTcp],
  ['HTTP+SSE', startSse],
  ['Streamable HTTP with sessions', startStreamable('one')],
  ['Streamable HTTP without sessions', startStreamable()],
  ['WebSocket', startWebSocket],
])('a server over %s that sends ping before it answers initialize', (_name, start) => {
  let server: PlainServer;
  let gateway: LocalGateway;
  beforeAll(async () => {
    server = await start(askingFirst('ping'));
    gateway = await startLocalGateway({ args: [server.url], isStoppedWithTest: false });
  });
  afterAll(async () => {
    await gateway?.stop();
    server?.stop();
  });

  test.each(callingClients)('[P3] serves a client over %s', async (_client, connect) => {
    const client = await connect(gateway.url);
    expect(await client.call('a')).toMatchObject({ result: { content: [{ text: 'a' }] } });
    await client.stop();
  });

  test('[P3] serves a client that accepts JSON alone', async () => {
    const session = await initialize(gateway.url, { headers: { Accept: 'application/json' } });
    expect((await session.callTool('echo', { text: 'a' })).content).toEqual([{ type: 'text', text: 'a' }]);
    await session.delete();
  });
});

test('[P3] servers of a view that send ping before they answer initialize', async () => {
  const starts = { one: startTcp, two: startSse, three: startStreamable('one'), four: startWebSocket };
  const started = Object.entries(starts).map(async ([name, start]) => {
    const server = await start(askingFirst('ping'));
    onTestFinished(() => server.stop());
    return [name, { url: server.url }] as const;
  });
  const servers = Object.fromEntries(await Promise.all(started));
  const { args } = await writeViewFile(servers, { all: { servers: Object.keys(servers) } });
  await using gateway = await startLocalGateway({ args });
  const session = await initialize(`${new URL(gateway.url).origin}/all/mcp`);
  for (const name of Object.keys(servers))
    expect((await session.callTool(`${name}__echo`, { text: name })).content).toEqual([{ type: 'text', text: name }]);
  await session.delete();
});

function inFiles(): readonly string[] {
  const directory = mkdtempSync(join(tmpdir(), 'gangway-early-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return ['--replay.store', `file:${directory}`];
}

test.each([
  ['memory', () => []],
  ['files', inFiles],
])('[P3] what a client answers before its session is open reaches the server (sessions in %s)', async (_, store) => {
  const server = await startTcp(askingFirst('roots/list'));
  onTestFinished(() => server.stop());
  await using gateway = await startLocalGateway({ args: [server.url, ...store()] });
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: { roots: {} },
    clientInfo: { name: 'early', version: '1' },
  };
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const opening = await open(gateway.url, { headers, body: { jsonrpc: '2.0', id: 0, method: 'initialize', params } });
  const asked = await opening.nextMessage(({ method }) => method === 'roots/list');
  const response = { jsonrpc: '2.0', id: asked.id, result: { roots: [] } };
  const sessionHeaders = { ...headers, 'Mcp-Session-Id': String(opening.headers['mcp-session-id']) };
  expect((await (await open(gateway.url, { headers: sessionHeaders, body: response })).answer()).status).toBe(202);
  expect((await opening.answer()).messages.at(-1)).toMatchObject({ id: 0, result: { serverInfo: { name: 'plain' } } });
});
