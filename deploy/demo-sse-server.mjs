// The old HTTP+SSE server (2024-11-05) of docker-compose.yml's profile `sse`: a GET of /sse opens a session and its stream, whose
// first event names where its messages are posted.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { answer } from './demo-tools.mjs';

const port = 9000;
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
}).listen(port);
