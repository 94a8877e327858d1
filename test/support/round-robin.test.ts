import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { open, post } from './http-client.ts';
import { findFreePort } from './redis-process.ts';
import { type RoundRobin, startRoundRobin } from './round-robin.ts';
import { createInbox, withDeadline } from './wait-for.ts';

type Handler = (request: IncomingMessage, response: ServerResponse, backend: number) => void;

const sayWho: Handler = (_, response, backend) => void response.end(`${backend}`);

async function startBackends(
  handler: Handler,
  count = 3,
): Promise<{ servers: Server[]; first: string; balancer: RoundRobin }> {
  const servers = await Promise.all(
    Array.from({ length: count }, async (_, backend) => {
      const server = createServer((request, response) => handler(request, response, backend)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  const backends = servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [first = ''] = backends;
  const balancer = await startRoundRobin({ backends });
  onTestFinished(async () => {
    await balancer.close();
    for (const server of servers) stopServer(server);
  });
  return { servers, first, balancer };
}

function stopServer(server: Server | undefined): void {
  server?.close();
  server?.closeAllConnections();
}

const textOf = async (url: string, headers = {}) => (await post(url, {}, headers)).text;

test('gives each request to the next backend, also those of one connection', async () => {
  const { balancer } = await startBackends(sayWho);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const texts = [];
  for (let n = 0; n < 6; n++) texts.push((await post(balancer.baseUrl, {}, {}, agent)).text);
  agent.destroy();
  expect(texts).toEqual(['0', '1', '2', '0', '1', '2']);
  expect(balancer.requests.items.map(({ backend }) => backend)).toEqual([0, 1, 2, 0, 1, 2]);
});

test('skips backends that accept no connection or are out of rotation, until they are back', async () => {
  const { servers, first, balancer } = await startBackends(sayWho);
  const url = balancer.baseUrl;
  stopServer(servers[1]);
  expect([await textOf(url), await textOf(url), await textOf(url)]).toEqual(['0', '2', '2']);
  balancer.setInRotation(2, false);
  expect([await textOf(url), await textOf(url), await textOf(url)]).toEqual(['0', '0', '0']);
  expect(await textOf(url, { 'x-instance': '2' })).toBe('2');
  balancer.setInRotation(2, true);
  balancer.setBackend(1, first);
  expect([await textOf(url), await textOf(url), await textOf(url)]).toEqual(['0', '0', '2']);
});

test('sends a request where its header or a function says, and nowhere else', async () => {
  const { servers, balancer } = await startBackends((request, response, backend) => {
    response.end(`${backend} ${request.headers['x-instance']}`);
  });
  const answer = await post(balancer.baseUrl, {}, { 'x-instance': '2' });
  expect([answer.text, answer.headers['x-instance']]).toEqual(['2 undefined', '2']);
  balancer.choose((request) => (request.url === '/one' ? 1 : undefined));
  expect(await textOf(`${balancer.baseUrl}/one`)).toBe('1 undefined');
  expect(await textOf(`${balancer.baseUrl}/one`)).toBe('1 undefined');
  expect(await textOf(`${balancer.baseUrl}/other`)).toBe('0 undefined');
  stopServer(servers[1]);
  expect((await post(`${balancer.baseUrl}/one`, {})).status).toBe(502);
  expect((await post(balancer.baseUrl, {}, { 'x-instance': '9' })).status).toBe(502);
});

test('answers 502 where nobody accepts a connection', async () => {
  const port = await findFreePort();
  await using balancer = await startRoundRobin({ backends: [`http://127.0.0.1:${port}`] });
  expect((await post(balancer.baseUrl, {})).status).toBe(502);
  expect(balancer.requests.items[0]?.backend).toBeUndefined();
});

test('passes heads and bodies on as they are, and as they come', async () => {
  const chunks = createInbox<string>();
  const seen = createInbox<IncomingMessage>();
  const { balancer } = await startBackends((request, response) => {
    seen.push(request);
    response.writeHead(201, 'Fine', { 'Content-Type': 'text/event-stream', 'X-Two': ['a', 'b'] });
    request.setEncoding('utf8').on('data', (chunk) => {
      chunks.push(chunk);
      response.write(`data: ${chunk}\n\n`);
    });
    request.on('end', () => response.end());
  });
  const client = connect(balancer.port, '127.0.0.1').setEncoding('utf8');
  let text = '';
  const received = createInbox<string>();
  client.on('data', (chunk: string) => {
    text += chunk;
    received.push(text);
  });
  client.write('POST /a?b=c HTTP/1.1\r\nHost: somewhere\r\nMcp-Session-Id: x\r\nTransfer-Encoding: chunked\r\n\r\n');
  client.write('3\r\none\r\n');
  expect(await chunks.next()).toBe('one');
  await received.next((all) => all.includes('data: one\n\n'));
  client.write('3\r\ntwo\r\n');
  await received.next((all) => all.includes('data: two\n\n'));
  client.write('0\r\n\r\n');
  await received.next((all) => all.endsWith('0\r\n\r\n'));
  client.destroy();
  expect(text).toMatch(/^HTTP\/1\.1 201 Fine\r\n/);
  expect(text).toMatch(/X-Two: a\r\nX-Two: b\r\n/);
  const [request] = seen.items;
  expect([request?.url, request?.headers.host, request?.headers['mcp-session-id']]).toEqual([
    '/a?b=c',
    'somewhere',
    'x',
  ]);
});

test("breaks the client's connection where the backend's breaks, and delivers what came before", async () => {
  const { balancer } = await startBackends((request, response) => {
    if (request.url === '/before') return void request.socket.resetAndDestroy();
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('id: 1\ndata: x\n\n', () => request.socket.destroy());
  });
  await expect(post(`${balancer.baseUrl}/before`, {})).rejects.toThrow('socket hang up');
  const exchange = await open(balancer.baseUrl, { method: 'GET' });
  await expect(exchange.answer()).rejects.toThrow();
  expect(exchange.events.items).toEqual([{ id: '1', data: 'x' }]);
});

test("breaks the backend's connection where the client's breaks", async () => {
  const left = createInbox<number>();
  const { balancer } = await startBackends((_, response, backend) => {
    response.on('close', () => left.push(backend));
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write(': hello\n\n');
  });
  const exchange = await open(balancer.baseUrl, { method: 'GET', headers: { 'x-instance': '1' } });
  await exchange.comments.next();
  exchange.drop();
  expect(await left.next()).toBe(1);
});

test('holds back a backend whose client does not read', async () => {
  let written = 0;
  const blocked = createInbox<number>();
  const { balancer } = await startBackends((_, response) => {
    response.writeHead(200, { 'Content-Type': 'application/octet-stream' });
    const write = (): void => {
      while (written < 64 * 1024 * 1024) {
        written += 64 * 1024;
        if (response.write(Buffer.alloc(64 * 1024))) continue;
        response.once('drain', write);
        blocked.push(written);
        return;
      }
      blocked.end();
    };
    write();
  });
  const client = connect(balancer.port, '127.0.0.1');
  client.pause();
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await blocked.next();
  await expect(withDeadline(blocked.ended, { deadlineMs: 300 })).rejects.toThrow('in vain');
  expect(written).toBeLessThan(32 * 1024 * 1024);
  client.destroy();
});
