// The least that any gateway must do in front of a server that runs by itself, as the measure for all: node:http in, undici out, text
// passed through. No checks, no back-pressure, no event ids, no restore, no logs: not a gateway to use. Each session has connections of its own.
// node ideal-remote.mjs --port N --transport sse|http <url>
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { parseArgs } from 'node:util';
import { Pool } from 'undici';

const { values, positionals } = parseArgs({
  options: { port: { type: 'string' }, transport: { type: 'string' } },
  allowPositionals: true,
});
const { origin, pathname } = new URL(positionals[0]);
const isSse = values.transport === 'sse';
const sessions = new Map();
const postHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const idOf = (text) => /"id":("[^"]*"|\d+)/.exec(text)?.[1];

/** Streamable HTTP: each POST is a POST, and its answer the answer. */
async function relay(session, text, response) {
  const of = session ?? { pool: new Pool(origin), headers: postHeaders };
  const answer = await of.pool.request({ method: 'POST', path: pathname, headers: of.headers, body: text });
  const body = Buffer.from(await answer.body.arrayBuffer());
  const { 'content-type': type, 'mcp-session-id': id } = answer.headers;
  if (session === undefined) {
    of.headers = { ...postHeaders, 'mcp-session-id': id };
    sessions.set(id, of);
  }
  const headers = {
    'content-length': body.length,
    ...(type && { 'content-type': type }),
    ...(id && { 'mcp-session-id': id }),
  };
  response.writeHead(answer.statusCode, headers).end(body);
}

/** HTTP+SSE: a stream for each session, whose answers go to the POSTs that wait for them. */
async function openSession() {
  const session = { id: randomUUID(), pool: new Pool(origin), calls: new Map() };
  const { body } = await session.pool.request({
    method: 'GET',
    path: pathname,
    headers: { accept: 'text/event-stream' },
  });
  sessions.set(session.id, session);
  const endpoint = new Promise((resolve) => {
    let held = '';
    body.setEncoding('utf8').on('error', () => sessions.delete(session.id));
    body.on('data', (chunk) => {
      const events = (held + chunk).split('\n\n');
      held = events.pop();
      for (const event of events) {
        const data = event.slice(event.indexOf('data: ') + 6);
        if (event.startsWith('event: endpoint')) resolve(data);
        else answer(session, data);
      }
    });
  });
  session.endpoint = await endpoint;
  return session;
}

function answer({ id: sessionId, calls }, data) {
  const response = calls.get(idOf(data));
  if (response === undefined) return;
  calls.delete(idOf(data));
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(data) };
  response.writeHead(200, { ...headers, 'mcp-session-id': sessionId }).end(data);
}

async function post(session, text, response) {
  const { pool, endpoint, calls } = session ?? (await openSession());
  const id = idOf(text);
  if (id !== undefined) calls.set(id, response);
  const { body } = await pool.request({ method: 'POST', path: endpoint, headers: postHeaders, body: text });
  await body.dump();
  if (id === undefined) response.writeHead(202).end();
}

const server = http.createServer((request, response) => {
  const session = sessions.get(request.headers['mcp-session-id']);
  if (request.method === 'POST') {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => void (isSse ? post : relay)(session, Buffer.concat(chunks), response));
  } else if (request.method === 'DELETE' && session !== undefined) {
    sessions.delete(request.headers['mcp-session-id']);
    void session.pool.destroy();
    response.writeHead(200).end();
  } else response.writeHead(session === undefined ? 404 : 405).end();
});
server.listen(Number(values.port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
