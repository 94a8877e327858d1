// An old HTTP+SSE server (MCP 2024-11-05) without npm packages, for the examples. A GET request for /sse opens a session and its stream.
// The first event of the stream names the URL for the client's messages. Set PORT and HOST to change the address of the server.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { answer } from './tools.mjs';

const port = Number(process.env.PORT ?? 9000);
const host = process.env.HOST ?? '127.0.0.1';
const streams = new Map();

createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  if (request.method === 'GET' && pathname === '/sse') {
    const id = randomUUID();
    streams.set(id, response);
    response.on('close', () => streams.delete(id));
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    return response.write(`event: endpoint\ndata: /messages?session=${id}\n\n`);
  }
  const stream = streams.get(searchParams.get('session'));
  if (request.method !== 'POST' || stream === undefined) return response.writeHead(pathname === '/' ? 204 : 404).end();
  const message = JSON.parse(Buffer.concat(await request.toArray()));
  response.writeHead(202).end();
  await answer(message, (text) => stream.write(`event: message\ndata: ${text}\n\n`));
}).listen(port, host, () => process.stdout.write(`The old server listens on http://${host}:${port}/sse\n`));
