// The least that any gateway must do in front of a server that runs by itself, as the measure for all: node:http in, undici out, text
// passed through. No checks, no back-pressure, no event ids, no restore, no logs: not a gateway to use. Each session has connections of its own,
// and so have all clients without a session together.
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
/** The session of all clients without one (2026-07-28). */
let shared;
const postHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const streamHeaders = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' };
const statelessHeaders = ['mcp-method', 'mcp-name', 'mcp-protocol-version'];
const [idKey, tokenKey] = ['"id":', '"progressToken":'];

/** What routing needs, by a look at both ends of a message; what is long has its token at the end. */
function look(text) {
  const ends = text.length > 260 ? text.slice(0, 180) + text.slice(-80) : text;
  return {
    id: /"id":("[^"]*"|\d+)/.exec(ends)?.[1],
    token: /"progressToken":("[^"]*"|\d+)/.exec(ends)?.[1],
    isEvent: ends.includes('"method":'),
  };
}

/** Streamable HTTP: each POST is a POST, and its answer the answer. */
async function relay(session, { text, headers }, response) {
  const of = session ?? { pool: new Pool(origin), headers: postHeaders };
  const sent = { ...of.headers };
  if (of.isShared) for (const name of statelessHeaders) sent[name] = headers[name];
  const answer = await of.pool.request({ method: 'POST', path: pathname, headers: sent, body: text });
  const { 'content-type': type, 'mcp-session-id': id } = answer.headers;
  if (session === undefined) {
    of.headers = { ...postHeaders, 'mcp-session-id': id };
    sessions.set(id, of);
  }
  if (type === 'text/event-stream') {
    response.writeHead(200, streamHeaders);
    return void answer.body.pipe(response);
  }
  const body = Buffer.from(await answer.body.arrayBuffer());
  const more = { ...(type && { 'content-type': type }), ...(id && { 'mcp-session-id': id }) };
  response.writeHead(answer.statusCode, { 'content-length': body.length, ...more }).end(body);
}

/** HTTP+SSE: a stream for each session, whose messages go to the POSTs that wait for them. */
async function openSession(isShared) {
  const session = { id: randomUUID(), pool: new Pool(origin), calls: new Map(), isShared, lastNumber: 0 };
  const { body } = await session.pool.request({
    method: 'GET',
    path: pathname,
    headers: { accept: 'text/event-stream' },
  });
  sessions.set(session.id, session);
  session.endpoint = await new Promise((resolve) => {
    let held = '';
    body.setEncoding('utf8').on('error', () => sessions.delete(session.id));
    body.on('data', (chunk) => {
      const events = (held + chunk).split('\n\n');
      held = events.pop();
      for (const event of events) {
        const data = event.slice(event.indexOf('data: ') + 6);
        if (event.startsWith('event: endpoint')) resolve(data);
        else deliver(session, data);
      }
    });
  });
  return session;
}

/** To the call that a message belongs to; the tokens of the load generator are the ids of its calls. */
function deliver({ id: sessionId, calls, isShared }, data) {
  const { id: ofResponse, token: ofEvent, isEvent } = look(data);
  const key = isEvent ? ofEvent : ofResponse;
  const call = calls.get(key);
  if (call === undefined) return;
  const { response, id } = call;
  const name = isEvent ? tokenKey : idKey;
  const text = isShared ? data.replace(name + key, name + id) : data;
  if (!isEvent) calls.delete(key);
  if (isEvent && !response.headersSent) response.writeHead(200, streamHeaders);
  if (isEvent) return void response.write(`event: message\ndata: ${text}\n\n`);
  if (response.headersSent) return void response.end(`event: message\ndata: ${text}\n\n`);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  response.writeHead(200, { ...headers, 'mcp-session-id': sessionId }).end(text);
}

async function post(given, { text }, response) {
  const session = given ?? (await openSession(false));
  const { pool, endpoint, calls, isShared } = session;
  let body = text.latin1Slice();
  const { id, token } = look(body);
  const key = isShared ? `${++session.lastNumber}` : id;
  if (isShared) body = body.replace(idKey + id, idKey + key).replace(tokenKey + token, tokenKey + key);
  if (id !== undefined) calls.set(key, { response, id });
  const answer = await pool.request({
    method: 'POST',
    path: endpoint,
    headers: postHeaders,
    body: isShared ? Buffer.from(body, 'latin1') : text,
  });
  await answer.body.dump();
  if (id === undefined) response.writeHead(202).end();
}

async function sessionOf({ headers }) {
  if (headers['mcp-method'] === undefined) return sessions.get(headers['mcp-session-id']);
  shared ??= isSse ? openSession(true) : { pool: new Pool(origin), headers: postHeaders, isShared: true };
  return shared;
}

async function serve(request, response, text) {
  const session = await sessionOf(request);
  if (request.method === 'POST') {
    await (isSse ? post : relay)(session, { text, headers: request.headers }, response);
  } else if (session === undefined) response.writeHead(404).end();
  else if (request.method === 'GET') response.writeHead(200, streamHeaders).flushHeaders();
  else {
    sessions.delete(request.headers['mcp-session-id']);
    void session.pool.destroy();
    response.writeHead(200).end();
  }
}

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => void serve(request, response, Buffer.concat(chunks)));
});
server.listen(Number(values.port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
