import { describe, expect, test } from 'vitest';
import { createTransportDetector, type WebTransport } from '../../src/backend/detect-transport.ts';
import { openSse } from '../../src/backend/sse/sse-backend.ts';
import { openStreamableHttp } from '../../src/backend/streamable-http/streamable-http-backend.ts';
import { openBackend } from './open-backend.ts';
import { beginStream, event, startSseServer } from './sse/sse-server.ts';
import { initialize, initialized, startHttpServer } from './streamable-http/streamable-http-server.ts';

const answer = JSON.stringify({ jsonrpc: '2.0', id: 0, result: { protocolVersion: '2024-11-05' } });

function detectorOf(url: URL) {
  const found: WebTransport[] = [];
  const limits = { url, connectTimeoutMs: 500, endpointTimeoutMs: 200 };
  const open = createTransportDetector({
    open: { http: (events) => openStreamableHttp(limits, events), sse: (events) => openSse(limits, events) },
    onFound: (transport) => void found.push(transport),
  });
  return { found, open: () => openBackend(open) };
}

/** An HTTP+SSE server that refuses POSTs to its stream's path so. */
const startOld = (status: number, body = 'no') =>
  startSseServer({
    onPost({ request, response }) {
      if (request.url === '/sse') return void response.writeHead(status).end(body);
      response.writeHead(202).end();
    },
  });

describe('finding out the transport', () => {
  test('[R8.07] a server that answers the POST of initialize speaks Streamable HTTP', async () => {
    const server = await startHttpServer();
    const { found, open } = detectorOf(server.url);
    for (const backend of [open(), open()]) {
      backend.send(initialize);
      expect(await backend.messages.next()).toContain('"id":0');
      backend.send(initialized);
      await server.gets.next();
    }
    expect(found).toEqual(['http']);
  });

  test.each([400, 404, 405])(
    '[R8.07] one that refuses it with %i and names an endpoint speaks HTTP+SSE; that is kept',
    async (status) => {
      const server = await startOld(status);
      const { found, open } = detectorOf(server.url);
      const first = open();
      expect(first.send(initialize)).toBe('sent');
      const stream = await server.streams.next();
      await server.posts.next();
      expect((await server.posts.next()).text).toBe(JSON.stringify(initialize));
      stream.write(event('message', answer));
      expect(await first.messages.next()).toBe(answer);
      expect([found, first.ends]).toEqual([['sse'], []]);
      const before = server.requests.length;
      const second = open();
      second.send(initialize);
      await server.posts.next();
      expect(server.requests.slice(before).map((line) => line.split('?')[0])).toEqual(['GET /sse', 'POST /messages']);
    },
  );

  test.each([401, 403, 406, 500, 503])('[R8.07] %i is no reason to try the other one', async (status) => {
    const server = await startOld(status);
    const { found, open } = detectorOf(server.url);
    const backend = open();
    backend.send(initialize);
    expect(await backend.end()).toMatchObject({ reason: 'failed', detail: expect.stringContaining(String(status)) });
    expect([found, server.requests]).toEqual([[], ['POST /sse']]);
  });

  test('[R8.07] nor is an error of the modern era', async () => {
    const server = await startHttpServer({
      onInitialize({ response }) {
        response.writeHead(400, { 'content-type': 'application/json' });
        response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"","data":{"supported":[]}}}');
      },
    });
    const backend = detectorOf(server.url).open();
    backend.send(initialize);
    expect(await backend.end()).toMatchObject({ detail: expect.stringContaining('2026-07-28') });
    expect(server.gets.items).toEqual([]);
  });

  test('[R8.07] a server that speaks neither is told as such, both reasons in one', async () => {
    const server = await startSseServer({
      onGet: (response) => void response.writeHead(404).end(),
      onPost: ({ response }) => void response.writeHead(404).end(),
    });
    const backend = detectorOf(server.url).open();
    backend.send(initialize);
    const { reason, detail } = await backend.end();
    expect([reason, detail]).toEqual(['failed', expect.stringMatching(/many end in \/mcp\..*many end in \/sse\./)]);
  });

  test('[R8.07] what was kept is found out again when it is no longer so', async () => {
    let isOld = true;
    const server = await startSseServer({
      onGet: (response) =>
        isOld ? void beginStream(response).write(event('endpoint', '/messages')) : void response.writeHead(405).end(),
      onPost({ request, response }) {
        if (isOld) return void response.writeHead(request.url === '/sse' ? 405 : 202).end();
        response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
      },
    });
    const { found, open } = detectorOf(server.url);
    const first = open();
    first.send(initialize);
    (await server.streams.next()).write(event('message', answer));
    await first.messages.next();
    isOld = false;
    const second = open();
    second.send(initialize);
    expect(await second.messages.next()).toBe(answer);
    expect(found).toEqual(['sse', 'http']);
  });

  test('is over with close', async () => {
    const server = await startOld(405);
    const backend = detectorOf(server.url).open();
    backend.backend.pause();
    backend.send(initialize);
    await backend.backend.close();
    expect(backend.ends).toEqual([
      { reason: 'closed', detail: 'The gateway closed the connection or process of the server.' },
    ]);
  });
});
