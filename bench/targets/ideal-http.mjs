// The least that any gateway must do in front of a server that runs by itself, as the measure for all: node:http in, undici out, text
// passed through, each POST a POST. No checks, no back-pressure, no event ids, no restore, no logs: not a gateway to use. Each session has
// connections of its own, and so have all clients without a session together.
// node ideal-http.mjs PORT URL
import http from 'node:http';
import { Pool } from 'undici';

const [port, url] = process.argv.slice(2);
const { origin, pathname } = new URL(url);
const sessions = new Map();
/** The session of all clients without one (2026-07-28). */
const shared = { pool: new Pool(origin) };
const postHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const streamHeaders = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' };
const passedHeaders = ['mcp-session-id', 'mcp-method', 'mcp-name', 'mcp-protocol-version'];

async function relay({ pool }, { headers }, text, response) {
  const passed = passedHeaders.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]]));
  const sent = { ...postHeaders, ...Object.fromEntries(passed) };
  const answer = await pool.request({ method: 'POST', path: pathname, headers: sent, body: text });
  const { 'content-type': type, 'mcp-session-id': id } = answer.headers;
  if (id !== undefined) sessions.set(id, { pool });
  if (type === 'text/event-stream') {
    response.writeHead(200, streamHeaders);
    return void answer.body.pipe(response);
  }
  const body = Buffer.from(await answer.body.arrayBuffer());
  const more = { ...(type && { 'content-type': type }), ...(id && { 'mcp-session-id': id }) };
  response.writeHead(answer.statusCode, { 'content-length': body.length, ...more }).end(body);
}

async function serve(request, response, text) {
  const { 'mcp-session-id': id, 'mcp-method': method } = request.headers;
  const session = method === undefined ? sessions.get(id) : shared;
  if (request.method === 'POST') await relay(session ?? { pool: new Pool(origin) }, request, text, response);
  else if (session === undefined) response.writeHead(404).end();
  else if (request.method === 'GET') response.writeHead(200, streamHeaders).flushHeaders();
  else {
    sessions.delete(id);
    void session.pool.destroy();
    response.writeHead(200).end();
  }
}

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => void serve(request, response, Buffer.concat(chunks)));
});
server.listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
