import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { initialize, post } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  accept,
  beginStream,
  expectNoSecret,
  greet,
  type Handler,
  initializeBody,
  startBehind,
} from './hostile-server.ts';

test.each<[string, Handler, Handler, number, string]>([
  ['5xx for the stream', (_, r) => void r.writeHead(500).end(), accept, 502, 'server_start_failed'],
  ['a wrong content type', (_, r) => void r.writeHead(200).end('{}'), accept, 502, 'server_start_failed'],
  ['no endpoint', (_, r) => void beginStream(r).write(': hi\n\n'), accept, 502, 'server_start_failed'],
  [
    'an endpoint elsewhere',
    (_, r) => void beginStream(r).write('event: endpoint\ndata: //evil/\n\n'),
    accept,
    502,
    'server_start_failed',
  ],
  [
    'a redirect',
    (_, r) => void r.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
    accept,
    502,
    'server_start_failed',
  ],
  ['5xx for the POST', greet, (_, r) => void r.writeHead(503).end(), 502, 'server_start_failed'],
  ['202 for the POST but no answer', greet, accept, 504, 'server_start_timeout'],
  ['no answer to the POST at all', greet, () => undefined, 504, 'server_start_timeout'],
])('[F28] [S11] %s: initialize is answered', async (_, onGet, onPost, status, reason) => {
  const { gateway } = await startBehind('sse', onGet, onPost);
  const answer = await post(`${gateway.baseUrl}/hostile/mcp`, initializeBody);
  expect([answer.status, answer.json.error.data.reason]).toEqual([status, reason]);
  expectNoSecret(gateway, answer.text);
});

test('[F28] a server that is not there, in a file with others: 502, and the gateway runs', async () => {
  const { gateway } = await startBehind('sse', greet, accept);
  const answer = await post(`${gateway.baseUrl}/other/mcp`, initializeBody);
  expect([answer.status, answer.json.error.data.reason]).toEqual([502, 'server_start_failed']);
});

test('[R8.03] [R8.04] [F28] [S11] later: a POST that fails, a drop in a call and one without an answer are told in band', async () => {
  const streams: ServerResponse[] = [];
  const { gateway } = await startBehind(
    'sse',
    (request, response) => {
      greet(request, response);
      streams.push(response);
    },
    async (request, response) => {
      const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()).toString());
      if (params?.name === 'refused') return void response.writeHead(500).end('upstream-secret');
      if (params?.name === 'dropped') return void streams.at(-1)?.destroy();
      response.writeHead(202).end();
      const capabilities = { tools: {} };
      const result =
        method === 'initialize'
          ? { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'x', version: '1' } }
          : {};
      if (id !== undefined && params?.name !== 'silent') {
        streams.at(-1)?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
      }
    },
  );
  const session = await initialize(`${gateway.baseUrl}/hostile/mcp`);
  const reasonOf = async (name: string) => {
    const { messages } = await session.request('tools/call', { name, arguments: {} });
    return messages.find(({ error }) => error)?.error.data.reason;
  };
  expect(await reasonOf('refused')).toBe('server_refused');
  const silent = session.send({ jsonrpc: '2.0', id: 's', method: 'tools/call', params: { name: 'silent' } });
  expect(await reasonOf('dropped')).toBe('server_exited');
  expect((await (await silent).answer()).messages.at(-1)?.error.data.reason).toBe('server_exited');
  await waitFor(() => gateway.logs().some(({ msg }) => msg === 'server restored'), { what: 'the restore' });
  expect(streams).toHaveLength(2);
  expect((await session.request('ping')).messages.at(-1)?.result).toEqual({});
  expectNoSecret(gateway);
});

test('[R8.05] [R8.06] [S16] initialize passes unchanged on a stream of its own, and no header of the client passes', async () => {
  const requests: IncomingMessage[] = [];
  const texts: string[] = [];
  const { gateway } = await startBehind(
    'sse',
    (request, response) => {
      requests.push(request);
      greet(request, response);
    },
    async (request, response) => {
      requests.push(request);
      texts.push(Buffer.concat(await request.toArray()).toString());
      response.writeHead(200, { 'content-type': 'application/json' });
      const result = { protocolVersion: '2024-11-05', capabilities: {}, serverInfo: { name: 'x', version: '1' } };
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 0, result }));
    },
  );
  const body = JSON.stringify(initializeBody).replace('"1"', '"1", "n": 12345678901234567890');
  const headers = {
    Authorization: 'Bearer of the client',
    Cookie: 'a=b',
    'X-Forwarded-For': '1.2.3.4',
    'Proxy-Authorization': 'Basic x',
    TE: 'trailers',
    'Last-Event-ID': '1',
    'X-Own': 'x',
    'Transfer-Encoding': 'chunked',
  };
  const answers = await Promise.all([1, 2].map(() => post(`${gateway.baseUrl}/hostile/mcp`, body, headers)));
  expect(answers.map(({ json }) => json.result.protocolVersion)).toEqual(['2024-11-05', '2024-11-05']);
  expect(texts).toEqual([body, body]);
  expect(requests.map(({ method }) => method).sort()).toEqual(['GET', 'GET', 'POST', 'POST']);
  const allowed = [
    'accept',
    'accept-encoding',
    'authorization',
    'cache-control',
    'connection',
    'content-length',
    'content-type',
    'host',
  ];
  for (const request of requests) {
    expect(Object.keys(request.headers).filter((name) => !allowed.includes(name))).toEqual([]);
    expect(request.headers.authorization).toBe('Bearer header-secret');
  }
  expectNoSecret(gateway, ...answers.map(({ text }) => text));
});
