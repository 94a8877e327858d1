/**
 * Our fixture with every feature as a server that runs by itself: `node sse-remote-server.mjs sse|ws|tcp|unix [path]`.
 * Prints its address. `sse` is the official SDK's SSEServerTransport behind node:http; SIGUSR2 restarts it: every
 * connection is cut, every session forgotten, and after a moment without a listener it is back on its port.
 */
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { PassThrough } from 'node:stream';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { WebSocketServer } from 'ws';
import { createLineTransport } from '../fixtures/everything/line-transport.mjs';
import { answerRawly } from '../fixtures/everything/raw-tools.mjs';
import { createEverythingServer } from '../fixtures/everything/server.mjs';

const [kind, path] = process.argv.slice(2);
const downMs = 300;
const tell = (address) => process.stdout.write(`${address}\n`);

if (kind === 'sse') serveSse();
else if (kind === 'ws') serveWebSocket();
else serveLines();

function serveLines() {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    const transport = createLineTransport({ stdin: socket, stdout: socket, intercept: answerRawly });
    void createEverythingServer().connect(transport);
  });
  server.listen(path ?? { port: 0, host: '127.0.0.1' }, () =>
    tell(path === undefined ? `tcp://127.0.0.1:${server.address().port}` : `unix://${path}`),
  );
}

function serveWebSocket() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (peer) => {
    const stdin = new PassThrough();
    peer.on('message', (text) => stdin.write(`${text}\n`));
    peer.on('close', () => stdin.end());
    const write = (lines) => {
      for (const line of lines.split('\n')) if (line !== '') peer.send(line);
    };
    const transport = createLineTransport({ stdin, stdout: { write }, intercept: answerRawly });
    void createEverythingServer().connect(transport);
  });
  server.on('listening', () => tell(`ws://127.0.0.1:${server.address().port}/mcp`));
}

function serveSse() {
  const sessions = new Map();
  const server = createHttpServer(async (request, response) => {
    const url = new URL(request.url, 'http://localhost');
    if (request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response);
      sessions.set(transport.sessionId, { transport, response });
      const { sessionId } = transport;
      response.on('close', () => sessions.delete(sessionId));
      // With it the SDK keeps a log level for each session, and the fixture's tools log without naming theirs.
      Object.defineProperty(transport, 'sessionId', { value: undefined });
      await createEverythingServer().connect(transport);
      return;
    }
    const session = sessions.get(url.searchParams.get('sessionId'));
    if (session === undefined) return response.writeHead(404).end();
    const text = Buffer.concat(await request.toArray()).toString();
    const message = JSON.parse(text);
    const write = (lines) => {
      for (const line of lines.split('\n'))
        if (line !== '') session.response.write(`event: message\ndata: ${line}\n\n`);
    };
    if (answerRawly({ message, line: text, write })) return response.writeHead(202).end('Accepted');
    await session.transport.handlePostMessage(request, response, message);
  });
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    tell(`http://127.0.0.1:${port}/sse`);
    process.on('SIGUSR2', () => {
      sessions.clear();
      server.close(() => setTimeout(() => server.listen(port, '127.0.0.1'), downMs));
      server.closeAllConnections();
    });
  });
}
