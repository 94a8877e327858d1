import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { connectOld } from '../support/old-client.ts';
import { withDeadline } from '../support/wait-for.ts';
import { watchStreams } from './stream-watch.ts';
import { outcomeOfError } from './talker.ts';

async function startServer(serve: RequestListener): Promise<string> {
  const server = createServer(serve).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const event = (message: object): string =>
  `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;
const progress = event({ method: 'notifications/progress', params: { progressToken: 7, progress: 1 } });
const answer = event({ id: 7, result: {} });

/** What a client gets of a POST whose answer is such a stream, and whether it was told that the stream is broken. */
async function seen(end: (response: ServerResponse) => void, type = 'text/event-stream'): Promise<[string, boolean]> {
  const url = await startServer((_, response) => end(response.writeHead(200, { 'Content-Type': type })));
  let isBroken = false;
  const watched = watchStreams(() => {
    isBroken = true;
  });
  const response = await watched(url, { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'm' }) });
  const got = await response.text().catch(() => 'an error');
  return [got, isBroken];
}

it('tells of the stream of a POST that is over before the answer, and of no other', async () => {
  const cut = (response: ServerResponse): void => void response.write(progress, () => response.destroy());
  expect(await seen(cut)).toEqual(['an error', true]);
  expect(await seen((response) => response.end(progress))).toEqual([progress, true]);
  expect(await seen((response) => response.end(event({ id: 8, result: {} })))).toEqual([expect.anything(), true]);
  expect(await seen((response) => response.end(progress + answer))).toEqual([progress + answer, false]);
  expect(await seen((response) => response.end('{}'), 'application/json')).toEqual(['{}', false]);
});

it('tells of an answer that was there before the cut as of an answer', async () => {
  const [, isBroken] = await seen((response) => response.write(progress + answer, () => response.destroy()));
  expect(isBroken).toBe(false);
});

/** How it ends when a client of HTTP+SSE opens its stream at such a server. */
const opening = async (serve: RequestListener): Promise<string> =>
  withDeadline(connectOld(await startServer(serve))).then(() => 'answered', outcomeOfError);

it('takes the refusal of an HTTP+SSE stream for what the gateway says, and only an end without one for broken', async () => {
  const fault = {
    jsonrpc: '2.0',
    id: null,
    error: { code: -32000, message: '…', data: { reason: 'store_unavailable' } },
  };
  const refused = await opening((_, response) => response.writeHead(503).end(JSON.stringify(fault)));
  expect(refused).toBe('store_unavailable');
  const stream = { 'Content-Type': 'text/event-stream' };
  expect(await opening((_, response) => response.writeHead(200, stream).end())).toBe('broken');
  expect(await opening((request) => request.socket.destroy())).toBe('broken');
  expect(await opening((_, response) => response.writeHead(502).end('Bad Gateway'))).toBe('broken');
  const later = await opening(async (request, response) => {
    if (request.method === 'GET') response.writeHead(200, stream).write('event: endpoint\ndata: /post?token=a\n\n');
    else {
      await text(request);
      response.writeHead(404).end(JSON.stringify({ error: { data: { reason: 'unknown_token' } } }));
    }
  });
  expect(later).toBe('unknown_token');
});
