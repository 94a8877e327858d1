// A minimal, fast MCP server that runs by itself: Streamable HTTP with JSON answers. Prints its URL.
// HTTP on raw sockets, since node:http would cost more than the gateway. It reads what relays send and nothing else: each body has
// a Content-Length. What it streams is calls that bring progress.
import net from 'node:net';
import { handle } from './tools.mjs';

let lastSession = 0;

const reply = (status, body = '', more = '') =>
  `HTTP/1.1 ${status}\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;
const json = 'Content-Type: application/json\r\n';
/** Events that are written together. */
const heldBytes = 4_096;
const chunkedHead = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';

/** Answers one request. */
function serve(socket, method, body) {
  if (method === 'GET') return void socket.write(reply('405 Method Not Allowed'));
  if (method !== 'POST') return void socket.write(reply('200 OK'));
  const message = JSON.parse(body);
  if (message.id === undefined || message.method === undefined) return void socket.write(reply('202 Accepted'));
  const session = message.method === 'initialize' ? `Mcp-Session-Id: ${++lastSession}\r\n` : '';
  if (message.params?.name === 'progress') return handle(message, createStream(socket));
  handle(message, (text) => socket.write(reply('200 OK', Buffer.from(text).latin1Slice(), json + session), 'latin1'));
}

/** An answer that is a stream, up to the response. All is ASCII. */
function createStream(socket) {
  let held = chunkedHead;
  return (text) => {
    const event = `event: message\ndata: ${text}\n\n`;
    held += `${event.length.toString(16)}\r\n${event}\r\n`;
    const isLast = !text.includes('"method":');
    if (isLast) held += '0\r\n\r\n';
    if (!isLast && held.length < heldBytes) return;
    socket.write(held, 'latin1');
    held = '';
  };
}

const server = net.createServer({ noDelay: true }, (socket) => {
  let held = '';
  socket.setEncoding('latin1');
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    held += chunk;
    for (;;) {
      const headEnd = held.indexOf('\r\n\r\n');
      if (headEnd === -1) return;
      const head = held.slice(0, headEnd);
      const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      const end = headEnd + 4 + length;
      if (held.length < end) return;
      const [method] = head.split(' ', 1);
      const body = Buffer.from(held.slice(headEnd + 4, end), 'latin1').toString();
      held = held.slice(end);
      serve(socket, method, body);
    }
  });
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}/mcp\n`);
});
