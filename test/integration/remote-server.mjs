/**
 * Our fixture with every feature as a server that runs by itself: `node remote-server.mjs sse|http|modern|both|ws [downMs]`
 * or `tcp|unix [path]`. Prints its address. `sse`, `http` (both with sessions), `modern` (2026-07-28 alone) and `both` (one
 * or the other) are the official SDK's transports behind node:http; SIGUSR2 restarts them and `ws`: every connection is cut,
 * every session forgotten, and after `downMs` without a listener they are back on their port. With sessions by HTTP, it
 * prints a line `session` for each one that begins, and `ended` for each that its client ends. `modern-tcp` and `modern-unix
 * [path]` are the fixture of 2026-07-28 alone.
 */
import { randomUUID } from 'node:crypto';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { PassThrough } from 'node:stream';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { WebSocketServer } from 'ws';
import { createEventStore } from '../fixtures/everything/event-store.mjs';
import { createLineTransport } from '../fixtures/everything/line-transport.mjs';
import { answerRawly } from '../fixtures/everything/raw-tools.mjs';
import { createEverythingServer } from '../fixtures/everything/server.mjs';
import { createModernHandler } from '../fixtures/modern/http.mjs';
import { createModernServer } from '../fixtures/modern/server.mjs';

const [kind, parameter] = process.argv.slice(2);
const downMs = Number(parameter ?? 300);
const tell = (address) => process.stdout.write(`${address}\n`);

if (kind === 'sse') serveSse();
else if (kind === 'ws') serveWebSocket();
else if (['http', 'modern', 'both'].includes(kind)) serveHttp(kind);
else serveLines(parameter, kind.startsWith('modern-') ? serveModern : serveLegacy);

function serveLegacy(transport) {
  void createEverythingServer().connect(transport);
}

function serveModern(transport) {
  serveStdio(createModernServer, { legacy: 'reject', transport });
}

function serveLines(path, serveClient) {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => undefined);
    serveClient(createLineTransport({ stdin: socket, stdout: socket, intercept: answerRawly }));
  });
  server.listen(path ?? { port: 0, host: '127.0.0.1' }, () =>
    tell(path === undefined ? `tcp://127.0.0.1:${server.address().port}` : `unix://${path}`),
  );
}

function serveWebSocket() {
  const sockets = new WebSocketServer({ noServer: true });
  sockets.on('connection', (peer) => {
    const stdin = new PassThrough();
    peer.on('message', (text) => stdin.write(`${text}\n`));
    peer.on('close', () => stdin.end());
    const write = (lines) => {
      for (const line of lines.split('\n')) if (line !== '') peer.send(line);
    };
    const transport = createLineTransport({ stdin, stdout: { write }, intercept: answerRawly });
    void createEverythingServer().connect(transport);
  });
  const upgrade = (...request) => sockets.handleUpgrade(...request, (peer) => sockets.emit('connection', peer));
  const forget = () => sockets.clients.forEach((peer) => void peer.terminate());
  serve('/mcp', () => undefined, forget, { scheme: 'ws', upgrade });
}

function serveSse() {
  const sessions = new Map();
  const handle = async (request, response) => {
    const url = new URL(request.url, 'http://localhost');
    if (request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response);
      sessions.set(transport.sessionId, { transport, response });
      const { sessionId } = transport;
      response.on('close', () => sessions.delete(sessionId));
      await createEverythingServer().connect(withoutSessionId(transport));
      return;
    }
    const session = sessions.get(url.searchParams.get('sessionId'));
    if (session === undefined) return response.writeHead(404).end();
    const { text, message } = await readMessage(request);
    const write = (lines) => writeEvents(session.response, lines);
    if (answerRawly({ message, line: text, write })) return response.writeHead(202).end('Accepted');
    await session.transport.handlePostMessage(request, response, message);
  };
  serve('/sse', handle, () => sessions.clear());
}

function serveHttp(eras) {
  const sessions = new Map();
  const handleModern = createModernHandler();
  const handle = async (request, response) => {
    const { text, message } = request.method === 'POST' ? await readMessage(request) : {};
    const isModern = eras === 'modern' || (eras === 'both' && isOfModernClient(request));
    const id = request.headers['mcp-session-id'];
    const transport = isModern || id !== undefined ? sessions.get(id) : await begin(sessions);
    if (transport === undefined && !isModern) return response.writeHead(404).end();
    if (message !== undefined && answerRawly({ message, line: text, write: (lines) => writeAnswer(response, lines) })) {
      return response.end();
    }
    if (isModern) await handleModern(request, response, message);
    else await transport.handleRequest(request, response, message);
  };
  serve('/mcp', handle, () => sessions.clear());
}

const isOfModernClient = ({ headers }) => headers['mcp-protocol-version'] === '2026-07-28';

/** A session of Streamable HTTP. */
async function begin(sessions) {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: createEventStore(),
    retryInterval: 100,
    onsessioninitialized(id) {
      sessions.set(id, transport);
      tell('session');
    },
    onsessionclosed(id) {
      sessions.delete(id);
      tell('ended');
    },
  });
  await createEverythingServer().connect(withoutSessionId(transport));
  return transport;
}

/** With it the SDK keeps a log level for each session, and the fixture's tools log without naming theirs. */
function withoutSessionId(transport) {
  const shown = {
    start: () => transport.start(),
    send: (message, options) => transport.send(message, options),
    close: () => transport.close(),
  };
  transport.onmessage = (message, extra) => shown.onmessage?.(message, { ...extra, requestInfo: { headers: {} } });
  transport.onclose = () => shown.onclose?.();
  transport.onerror = (error) => shown.onerror?.(error);
  return shown;
}

async function readMessage(request) {
  const text = Buffer.concat(await request.toArray()).toString();
  return { text, message: JSON.parse(text) };
}

function writeEvents(response, lines) {
  for (const line of lines.split('\n')) if (line !== '') response.write(`event: message\ndata: ${line}\n\n`);
}

function writeAnswer(response, lines) {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
  writeEvents(response, lines);
}

function serve(path, handle, forget, { scheme = 'http', upgrade } = {}) {
  const server = createHttpServer((request, response) => {
    // A request that a restart cuts before its end is no fault, and must not end this program.
    Promise.resolve(handle(request, response)).catch((cause) => {
      if (cause !== request.errored) throw cause;
    });
  });
  if (upgrade !== undefined) server.on('upgrade', upgrade);
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    tell(`${scheme}://127.0.0.1:${port}${path}`);
    process.on('SIGUSR2', () => {
      forget();
      server.close(() => setTimeout(() => server.listen(port, '127.0.0.1'), downMs));
      server.closeAllConnections();
    });
  });
}
