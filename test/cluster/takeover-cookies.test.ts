import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { startCluster } from '../support/cluster.ts';
import { initialize, type Message } from '../support/http-client.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { faultArgs, mayTakeOver, urlOf } from './patience.ts';

/** Each client without a cookie gets one, as from a balancer. The tool tells the cookie of its request. */
let lastNode = 0;
const givenCookie = ({ headers }: IncomingMessage): string | undefined => /node=\d+/.exec(headers.cookie ?? '')?.[0];
const newCookie = (): string => {
  lastNode += 1;
  return `node=${lastNode}`;
};

function answerTo({ id, method, params }: Message, cookie: string): string {
  const opened = {
    protocolVersion: params?.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 's', version: '1' },
  };
  const results: Readonly<Record<string, object>> = {
    initialize: opened,
    ping: {},
    'tools/call': { content: [{ type: 'text', text: cookie }] },
  };
  const error = { code: -32601, message: 'Method not found' };
  return JSON.stringify({ jsonrpc: '2.0', id, ...(results[method] ? { result: results[method] } : { error }) });
}

async function readMessage(request: IncomingMessage): Promise<Message> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return JSON.parse(text);
}

async function serveHttp(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'POST') return void response.writeHead(405).end();
  const message = await readMessage(request);
  if (message.id === undefined) return void response.writeHead(202).end();
  const cookie = givenCookie(request) ?? newCookie();
  const headers = { 'content-type': 'application/json', 'mcp-session-id': 'one', 'set-cookie': `${cookie}; Path=/` };
  response.writeHead(200, headers).end(answerTo(message, cookie));
}

const streams = new Map<string, ServerResponse>();
async function serveSse(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'GET') {
    const cookie = givenCookie(request) ?? newCookie();
    const name = `${streams.size}`;
    streams.set(name, response);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'set-cookie': cookie });
    return void response.write(`event: endpoint\ndata: /sse?stream=${name}\n\n`);
  }
  const message = await readMessage(request);
  const name = new URL(request.url ?? '', 'http://x').searchParams.get('stream') ?? '';
  response.writeHead(202).end();
  if (message.id === undefined) return;
  streams.get(name)?.write(`event: message\ndata: ${answerTo(message, givenCookie(request) ?? 'none')}\n\n`);
}

const server = createServer((request, response) => {
  const serve = request.url?.startsWith('/sse') === true ? serveSse : serveHttp;
  void serve(request, response);
});
const sockets = new WebSocketServer({ noServer: true });
server.on('upgrade', (request, socket, head) => {
  const cookie = givenCookie(request) ?? newCookie();
  sockets.once('headers', (headers) => void headers.push(`Set-Cookie: ${cookie}`));
  sockets.handleUpgrade(request, socket, head, (peer) => {
    peer.on('message', (data) => {
      const message: Message = JSON.parse(String(data));
      if (message.id !== undefined) peer.send(answerTo(message, cookie));
    });
  });
});

let redis: RedisServer;
let port = 0;
beforeAll(async () => {
  redis = await startUsedRedis();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  ({ port } = server.address() as AddressInfo);
});
afterAll(async () => {
  await redis?.stop();
  for (const peer of sockets.clients) peer.terminate();
  server.closeAllConnections();
  server.close();
});

/** The record is written a moment later. */
async function isRecorded(cookie: string): Promise<boolean> {
  const keys = (await redis.command('KEYS', '*:record')) as readonly string[];
  const states = await Promise.all(keys.map((key) => redis.command('HGET', key, 'clientState')));
  return states.some((state) => String(state).includes(`"${cookie.split('=')[1]}"`));
}

test.each([
  ['Streamable HTTP', 'http', '/mcp', ['--transport', 'http']],
  ['HTTP+SSE', 'http', '/sse', ['--transport', 'sse']],
  ['WebSocket', 'ws', '/ws', []],
] as const)(
  '[P3] the cookie of a server of %s goes back to it from the next owner of the session',
  async (_, scheme, path, how) => {
    const url = `${scheme}://127.0.0.1:${port}${path}`;
    const cluster = await startCluster({ redis, instances: 2, args: [...faultArgs, '--era', 'legacy', ...how, url] });
    await mayTakeOver(cluster);
    const session = await initialize(urlOf(cluster, 0));
    const told = async (at: typeof session): Promise<string> => (await at.callTool('cookie')).content[0].text;
    const cookie = await told(session);
    expect(cookie).toMatch(/^node=\d+$/);
    const at = session.at(urlOf(cluster, 1));
    await at.request('ping');
    await waitFor(() => isRecorded(cookie), { what: 'the cookie in the record' });
    await cluster.kill(0);
    expect(await told(at)).toBe(cookie);
  },
);
