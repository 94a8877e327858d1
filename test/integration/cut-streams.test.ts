// Servers whose idle streams a proxy cuts, every few seconds: each kind of client goes on in its session for ever.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { initialize, type Message } from '../support/http-client.ts';
import { callModern } from '../support/modern-client.ts';
import { connectOld } from '../support/old-client.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';

/** More than the losses within a minute that are a crash loop of a server that the gateway starts. */
const cuts = 12;

/** A legacy server at a URL, without any SDK, whose streams the test cuts. */
interface CutServer {
  readonly url: string;
  /** Cuts all streams, in order or with a reset. Resolves with their number. */
  cut(how: How): number;
  stop(): void;
}

type How = 'ended' | 'reset';

const serverInfo = { name: 'cut', version: '1' };

/** The answer to a message; undefined for a notification. */
function answerTo({ id, method, params }: Message): object | undefined {
  if (id === undefined) return undefined;
  const results: Record<string, () => object> = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }),
    ping: () => ({}),
    'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
    'tools/call': () => ({ content: [{ type: 'text', text: params.arguments.text }] }),
  };
  const result = results[method]?.();
  return { jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'Method not found' } }) };
}

async function bodyOf(incoming: IncomingMessage): Promise<Message> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

const sse = { 'content-type': 'text/event-stream' };
const event = (type: string, data: string) => `event: ${type}\ndata: ${data}\n\n`;

function startHttp(handle: (incoming: IncomingMessage, outgoing: ServerResponse, streams: Streams) => unknown) {
  const streams: Streams = new Map();
  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing, streams));
  return listen(server, 'http', (how) => {
    const all = [...streams.values()];
    for (const stream of all) how === 'ended' ? stream.end() : stream.destroy();
    streams.clear();
    return all.length;
  });
}

type Streams = Map<string, ServerResponse>;

async function listen(
  server: ReturnType<typeof createServer>,
  scheme: string,
  cut: CutServer['cut'],
): Promise<CutServer> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    cut,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A session of HTTP+SSE is its stream: a POST for another one gets 404. */
function startSse(): Promise<CutServer> {
  let opened = 0;
  return startHttp(async (incoming, outgoing, streams) => {
    if (incoming.method === 'GET') {
      const id = `${++opened}`;
      streams.set(id, outgoing.writeHead(200, sse));
      return outgoing.write(event('endpoint', `/messages?id=${id}`));
    }
    const stream = streams.get(new URL(incoming.url ?? '', 'http://localhost').searchParams.get('id') ?? '');
    const answer = answerTo(await bodyOf(incoming));
    outgoing.writeHead(stream === undefined ? 404 : 202).end();
    return answer !== undefined && stream?.write(event('message', JSON.stringify(answer)));
  });
}

/** Streamable HTTP, with sessions or without. Its streams are those of GET. */
const startStreamable = (sessionId: string | undefined) => (): Promise<CutServer> =>
  startHttp(async (incoming, outgoing, streams) => {
    if (incoming.method === 'GET') {
      streams.set(`${streams.size}`, outgoing.writeHead(200, sse));
      return outgoing.flushHeaders();
    }
    if (incoming.method !== 'POST') return outgoing.writeHead(405).end();
    const message = await bodyOf(incoming);
    const answer = answerTo(message);
    if (answer === undefined) return outgoing.writeHead(202).end();
    const isFirst = message.method === 'initialize' && sessionId !== undefined;
    const headers = { 'content-type': 'application/json', ...(isFirst && { 'mcp-session-id': sessionId }) };
    return outgoing.writeHead(200, headers).end(JSON.stringify(answer));
  });

function startWebSocket(): Promise<CutServer> {
  const sockets = new WebSocketServer({ noServer: true });
  sockets.on('connection', (peer) => {
    peer.on('message', (text) => {
      const answer = answerTo(JSON.parse(String(text)));
      if (answer !== undefined) peer.send(JSON.stringify(answer));
    });
  });
  const server = createServer();
  server.on('upgrade', (...request) =>
    sockets.handleUpgrade(...request, (peer) => void sockets.emit('connection', peer)),
  );
  return listen(server, 'ws', (how) => {
    const all = [...sockets.clients];
    for (const peer of all) how === 'ended' ? peer.close(1000) : peer.terminate();
    return all.length;
  });
}

/** A client in one session, as far as it has one. */
interface CallingClient {
  call(text: string): Promise<Message>;
  stop(): unknown;
}

const clients: readonly (readonly [name: string, connect: (url: string) => Promise<CallingClient>])[] = [
  [
    'Streamable HTTP',
    async (url) => {
      const session = await initialize(url);
      return {
        call: async (text) =>
          (await session.request('tools/call', { name: 'echo', arguments: { text } })).messages.at(-1),
        stop: () => session.delete(),
      };
    },
  ],
  [
    'HTTP+SSE',
    async (url) => {
      const client = await connectOld(new URL(url).origin);
      return {
        call: (text) => client.request('tools/call', { name: 'echo', arguments: { text } }),
        stop: () => client.drop(),
      };
    },
  ],
  [
    'WebSocket',
    async (url) => {
      const client = await connectWebSocket(webSocketUrlOf(url));
      await client.initialize();
      let id = 0;
      return {
        call(text) {
          client.send({
            jsonrpc: '2.0',
            id: ++id,
            method: 'tools/call',
            params: { name: 'echo', arguments: { text } },
          });
          return client.next((message) => message.id === id && message.method === undefined);
        },
        stop: () => client.peer.terminate(),
      };
    },
  ],
  [
    '2026-07-28',
    async (url) => ({
      call: async (text) => (await callModern(url, 'echo', { text })).messages.at(-1),
      stop: () => undefined,
    }),
  ],
];

describe.each<[string, How, () => Promise<CutServer>]>([
  ['HTTP+SSE', 'ended', startSse],
  ['HTTP+SSE', 'reset', startSse],
  ['Streamable HTTP with sessions', 'ended', startStreamable('one')],
  ['Streamable HTTP with sessions', 'reset', startStreamable('one')],
  ['Streamable HTTP without sessions', 'reset', startStreamable(undefined)],
  ['WebSocket', 'ended', startWebSocket],
  ['WebSocket', 'reset', startWebSocket],
])('a server over %s whose streams are %s', (_name, how, start) => {
  let server: CutServer;
  let gateway: Gateway;
  beforeAll(async () => {
    server = await start();
    gateway = await startGateway({ args: [server.url, '--share', 'auto'], isStoppedWithTest: false });
  });
  afterAll(async () => {
    await gateway?.stop();
    server?.stop();
  });

  test.each(clients)(
    '[F28] [P3] serves a client over %s in the same session, however often that happens between its calls',
    async (_client, connect) => {
      const client = await connect(gateway.url);
      let streams = 0;
      for (let round = 0; round <= cuts; round += 1) {
        expect(await client.call(`${round}`)).toMatchObject({ result: { content: [{ text: `${round}` }] } });
        streams += server.cut(how);
      }
      // A GET stream that ends at once is asked for again at most once a second, so not each round has one.
      expect(streams).toBeGreaterThan(0);
      await client.stop();
    },
  );
});
