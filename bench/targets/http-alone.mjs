// HTTP and nothing behind it: node:http that answers echo calls of a text itself. What a gateway in Node.js pays before it has done anything.
// node http-alone.mjs --port N
import { randomUUID } from 'node:crypto';
import http from 'node:http';

const port = Number(process.argv[process.argv.indexOf('--port') + 1]);
const json = { 'content-type': 'application/json' };
const textKey = Buffer.from('"text":');
const closing = '}}}'.length;

/** The echo tool's answer: everything that stands in the place of `text`, as it was written. */
function echo(id, body) {
  const text = body.subarray(body.indexOf(textKey) + textKey.length, body.length - closing);
  const head = `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":`;
  return Buffer.concat([Buffer.from(head), text, Buffer.from('}]}}')]);
}

function answer(body, response) {
  const head = body.latin1Slice(0, Math.min(180, body.length));
  const id = /"id":(\d+)/.exec(head)?.[1];
  if (id === undefined) return void response.writeHead(202).end();
  const isNew = head.includes('"initialize"');
  const text = isNew ? Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{}}`) : echo(id, body);
  const session = isNew ? { 'mcp-session-id': randomUUID() } : {};
  response.writeHead(200, { ...json, 'content-length': text.length, ...session }).end(text);
}

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    if (request.method === 'POST') answer(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks), response);
    else response.writeHead(200).end();
  });
});
server.listen(port, '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
