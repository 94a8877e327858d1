import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createTransportDetector, type WebTransport } from '../../src/core/backend/detect-transport.ts';
import { openSse } from '../../src/features/remote/sse/sse-backend.ts';
import { openStreamableHttp } from '../../src/features/remote/streamable-http/streamable-http-backend.ts';
import { openBackend } from '../core/backend/open-backend.ts';
import { beginStream, event, startSseServer } from '../features/remote/sse/sse-server.ts';
import {
  greet,
  initialize,
  initialized,
  type Received,
  startHttpServer,
} from '../features/remote/streamable-http/streamable-http-server.ts';

const answer = JSON.stringify({ jsonrpc: '2.0', id: 0, result: { protocolVersion: '2024-11-05' } });

function detectorOf(url: URL) {
  const found: WebTransport[] = [];
  const limits = { url, answerTimeoutMs: 500, endpointTimeoutMs: 200 };
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

  test.each<[string, (response: ServerResponse) => void]>([
    ...[401, 403, 406, 415, 422, 429, 500, 501, 503].map((status): [string, (response: ServerResponse) => void] => [
      String(status),
      (r) => void r.writeHead(status).end('no'),
    ]),
    ['202', (r) => void r.writeHead(202).end()],
    ['204', (r) => void r.writeHead(204).end()],
    ['200 and no body', (r) => void r.writeHead(200).end()],
    ['HTML', (r) => void r.writeHead(200, { 'content-type': 'text/html' }).end('<p>')],
    ['{}', (r) => void r.writeHead(200, { 'content-type': 'application/json' }).end('{}')],
    ['an empty stream', (r) => void beginStream(r).end()],
    ['a stream with an endpoint', (r) => void beginStream(r).write(event('endpoint', '/messages'))],
    ['nothing at all', () => undefined],
  ])('[R8.07] one that answers it with %s and names an endpoint speaks HTTP+SSE', async (_, refuse) => {
    const server = await startSseServer({
      onPost: ({ request, response }) =>
        request.url === '/sse' ? refuse(response) : void response.writeHead(202).end(),
    });
    const { found, open } = detectorOf(server.url);
    const backend = open();
    backend.send(initialize);
    (await server.streams.next()).write(event('message', answer));
    expect(await backend.messages.next()).toBe(answer);
    expect([found, backend.ends]).toEqual([['sse'], []]);
  });

  test.each([401, 503])('[R8.07] but %i is not one once Streamable HTTP is known', async (status) => {
    let isAway = false;
    const server = await startHttpServer({
      onInitialize: (received) => (isAway ? void received.response.writeHead(status).end() : greet(received)),
    });
    const { found, open } = detectorOf(server.url);
    const first = open();
    first.send(initialize);
    await first.messages.next();
    isAway = true;
    const second = open();
    second.send(initialize);
    expect(await second.end()).toMatchObject({ reason: 'failed', detail: expect.stringContaining(String(status)) });
    expect([found, server.gets.items]).toEqual([['http'], []]);
  });

  test('[R8.07] and 401 stays what it is if there is no stream either', async () => {
    const server = await startHttpServer({ onInitialize: ({ response }) => void response.writeHead(401).end() });
    const backend = detectorOf(server.url).open();
    backend.send(initialize);
    expect(await backend.end()).toMatchObject({
      isUnauthorized: true,
      detail: expect.stringMatching(/401.*\(405\).*--transport sse/),
    });
  });

  test('[R8.07] a server that answers late speaks Streamable HTTP, although its stream is asked for meanwhile', async () => {
    let waiting: Received | undefined;
    const server = await startHttpServer({
      onInitialize(received) {
        waiting = received;
      },
      onGet: ({ response }) => {
        beginStream(response).flushHeaders();
        if (waiting !== undefined) greet(waiting);
      },
    });
    const { found, open } = detectorOf(server.url);
    const backend = open();
    backend.send(initialize);
    expect(await backend.messages.next()).toContain('"id":0');
    await backend.backend.close();
    expect([found, backend.ends.length]).toEqual([['http'], 1]);
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
