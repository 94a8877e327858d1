// The least that any gateway must do, as the measure for all: node:http in, a child's pipe out, text passed through.
// No checks, no back-pressure, no event ids, no logs: not a gateway to use.
// node ideal.mjs PORT REDIS_PORT COMMAND [ARGS]
// With a Redis (0: none), all the messages of a chunk are one entry of a Redis Stream before the client sees them.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import http from 'node:http';

const [port, redisPort, command, ...args] = process.argv.slice(2);
const redis = redisPort === '0' ? undefined : await connectRedis();

const lineFeed = Buffer.from('\n');
const [idKey, tokenKey] = ['"id":', '"progressToken":'];
const eventHead = Buffer.from('event: message\ndata: ');
const eventEnd = Buffer.from('\n\n');
const streamHeaders = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' };
const sessions = new Map();
/** The one process of all clients without a session (2026-07-28), and the numbers under which it knows their calls. */
let shared;
let lastNumber = 0;

/** What routing needs, as raw JSON text, by a look at both ends of a message. */
function look(text) {
  const head = text.latin1Slice(0, Math.min(180, text.length));
  const tail = text.length > 180 ? text.latin1Slice(text.length - 80) : '';
  const token = /"progressToken":("[^"]*"|\d+)/;
  return {
    id: /"id":("[^"]*"|\d+)/.exec(head)?.[1],
    method: /"method":"([^"]*)"/.exec(head)?.[1],
    token: (token.exec(head) ?? token.exec(tail))?.[1],
  };
}

function openSession() {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const session = { id: randomUUID(), child, calls: new Map(), tokens: new Map(), stream: undefined };
  const forget = () => sessions.delete(session.id);
  let held = [];
  child.stdout.on('data', (chunk) => {
    const lines = [];
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const part = chunk.subarray(start, end);
      lines.push(held.length > 0 ? Buffer.concat([...held, part]) : part);
      held = [];
      start = end + 1;
    }
    if (start < chunk.length) held.push(chunk.subarray(start));
    if (redis === undefined) deliver(session, lines);
    else store(session, lines);
  });
  child.on('exit', forget);
  child.on('error', forget);
  child.stdin.on('error', forget);
  sessions.set(session.id, session);
  return session;
}

async function connectRedis() {
  const { Redis } = await import('ioredis');
  return new Redis({ port: Number(redisPort), host: '127.0.0.1' });
}

/** Delivers the lines of one chunk once Redis has them; chunks in their order. */
function store(session, lines) {
  const entry = Buffer.concat(lines.flatMap((line) => [line, lineFeed]));
  const added = redis.xadd(`ideal:${session.id}`, 'MAXLEN', '~', 1000, '*', 'd', entry);
  session.stored = Promise.all([added, session.stored]).then(() => deliver(session, lines));
}

/** Brings the lines of one chunk to their responses; consecutive events of one response are one write. */
function deliver(session, lines) {
  let to;
  let parts = [];
  const flush = () => {
    if (parts.length > 0) to.write(Buffer.concat(parts));
    parts = [];
  };
  for (const line of lines) {
    const { id, method, token } = look(line);
    const isResponse = method === undefined;
    const call = isResponse ? session.calls.get(id) : session.tokens.get(token);
    const response = call?.response ?? (isResponse ? undefined : session.stream);
    if (response === undefined) continue;
    if (to !== response) flush();
    to = response;
    const text = session === shared ? renamed(line, call, isResponse) : line;
    if (isResponse) {
      session.calls.delete(id);
      session.tokens.delete(call.token);
      if (!response.headersSent) {
        const headers = { 'content-type': 'application/json', 'content-length': text.length, ...call.headers };
        response.writeHead(200, headers).end(text);
        continue;
      }
    } else if (!response.headersSent) response.writeHead(200, streamHeaders);
    parts.push(eventHead, text, eventEnd);
    if (!isResponse) continue;
    response.end(Buffer.concat(parts));
    parts = [];
  }
  flush();
}

/** The text with something else in place of what stands behind the first `key`. */
function replace(text, key, value, by) {
  const at = text.indexOf(`${key}${value}`) + key.length;
  return Buffer.concat([text.subarray(0, at), Buffer.from(by), text.subarray(at + value.length)]);
}

/** What the shared process says, as the client of a call has named it. */
const renamed = (line, call, isResponse) =>
  isResponse ? replace(line, idKey, call.number, call.id) : replace(line, tokenKey, call.number, call.ownToken);

/** A call of a client without a session: to the process that all share, under a number of its own. */
function postShared(text, response) {
  const { id, token } = look(text);
  shared ??= openSession();
  const number = String(++lastNumber);
  const isQuiet = token === undefined;
  const call = { response, id, number, ownToken: token, token: isQuiet ? undefined : number };
  shared.calls.set(number, call);
  if (!isQuiet) shared.tokens.set(number, call);
  const numbered = replace(text, idKey, id, number);
  send(shared.child, isQuiet ? numbered : replace(numbered, tokenKey, token, number));
}

function send(child, text) {
  child.stdin.cork();
  child.stdin.write(text);
  child.stdin.write(lineFeed);
  child.stdin.uncork();
}

function post(session, text, response) {
  const { id, method, token } = look(text);
  const isNew = method === 'initialize';
  const of = isNew ? openSession() : session;
  if (of === undefined) return void response.writeHead(404).end();
  if (id === undefined || method === undefined) response.writeHead(202).end();
  else {
    const call = { response, token, headers: isNew ? { 'mcp-session-id': of.id } : undefined };
    of.calls.set(id, call);
    if (token !== undefined) of.tokens.set(token, call);
  }
  send(of.child, text);
}

function endSession(session) {
  sessions.delete(session.id);
  session.child.stdin.end();
  session.child.kill();
}

const server = http.createServer((request, response) => {
  const session = sessions.get(request.headers['mcp-session-id']);
  if (request.method === 'POST') {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const text = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
      if (request.headers['mcp-method'] === undefined) post(session, text, response);
      else postShared(text, response);
    });
  } else if (session === undefined) response.writeHead(404).end();
  else if (request.method === 'GET') {
    session.stream = response;
    response.writeHead(200, streamHeaders).flushHeaders();
  } else {
    endSession(session);
    response.writeHead(200).end();
  }
});
server.listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => {
  for (const session of sessions.values()) endSession(session);
  shared?.child.kill();
  process.exit(0);
});
