import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { OpenBackend } from '../../../../src/core/backend/backend.ts';
import { noHeaders } from '../../../../src/core/protocol/http/forwarded-headers.ts';
import { challengeTo } from '../../../../src/core/protocol/http/upstream-challenge.ts';
import { createBackpressureGroup } from '../../../../src/features/remote/http-client/backpressure-group.ts';
import { Exchange } from '../../../../src/features/remote/http-client/exchange.ts';
import type { HttpConnection } from '../../../../src/features/remote/http-client/http-connection.ts';
import { ResponseBody } from '../../../../src/features/remote/http-client/response-body.ts';
import type { UrlServerOptions } from '../../../../src/features/remote/http-client/server-connection.ts';
import { openModernHttp } from '../../../../src/features/remote/modern-http/modern-http-backend.ts';
import { openSse } from '../../../../src/features/remote/sse/sse-backend.ts';
import { openStreamableHttp } from '../../../../src/features/remote/streamable-http/streamable-http-backend.ts';
import { listening, startVictim } from '../../../core/backend/local-servers.ts';
import { openBackend } from '../../../core/backend/open-backend.ts';
import { asMessage } from '../../../support/as-message.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { ask, discovered } from '../modern-http/live.ts';
import { event as sseEvent } from '../sse/sse-server.ts';
import {
  answerTo,
  beginStream,
  cancel,
  event,
  initialize,
  initialized,
  json,
  note,
  welcome,
} from '../streamable-http/streamable-http-server.ts';

const maxLineBytes = 10_000;
const limits = { maxLineBytes, postTimeoutMs: 5_000 };

/** A transport: how its backend is opened, and how the first request is. */
interface Kind {
  readonly name: string;
  readonly first: object;
  open(url: URL, options?: Omit<UrlServerOptions, 'url'>): OpenBackend;
}
const streamableHttp: Kind = {
  name: 'Streamable HTTP',
  first: initialize,
  open: (url, options) => (events) => openStreamableHttp({ url, ...limits, ...options }, events),
};
const sse: Kind = {
  name: 'HTTP+SSE',
  first: initialize,
  open: (url, options) => (events) => openSse({ url, ...limits, ...options }, events),
};
const modern: Kind = {
  name: 'the modern era',
  first: ask(0, 'server/discover'),
  open: (url, options) => (events) => openModernHttp({ url, version: '1', ...limits, ...options }, events),
};
const kinds = [streamableHttp, sse, modern];
const withSession = [streamableHttp, sse];

/** A request of any era. */
const request = (id: number) => ask(id);

// biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
type Answer = (response: ServerResponse, message: any) => void;

/** A server of every transport, which answers the first request and pings, and calls as the test says. */
async function startServer(answer: Answer, answerFirst?: Answer) {
  const posted: unknown[] = [];
  let stream: ServerResponse | undefined;
  const server = createServer(async (received, response) => {
    response.on('error', () => undefined);
    if (received.method === 'GET') {
      stream = beginStream(response);
      stream.write(sseEvent('endpoint', '/messages'));
      return;
    }
    let text = '';
    for await (const chunk of received) text += chunk;
    const message = JSON.parse(text);
    const isSse = received.url === '/messages';
    const respond = (result: unknown): void => {
      if (!isSse)
        return json(response, answerTo(message, result), received.url === '/mcp' ? { 'mcp-session-id': 's' } : {});
      response.writeHead(202).end();
      stream?.write(event(answerTo(message, result)));
    };
    if (message.method === 'ping') respond({});
    else if (message.id === 0 && answerFirst !== undefined) answerFirst(response, message);
    else if (message.method === 'server/discover') respond(discovered);
    else if (message.method === 'initialize') respond(welcome);
    else if (message.method === 'notifications/initialized' || message.method === 'notifications/cancelled')
      response.writeHead(202).end();
    else {
      posted.push(message.id ?? message.method);
      answer(response, message);
    }
  });
  await listen(server);
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  return { url, posted, stream: () => stream as ServerResponse };
}

async function listen(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    if ('closeAllConnections' in server) (server as { closeAllConnections(): void }).closeAllConnections();
    server.close();
  });
}

/** A backend whose session has begun. Its messages start after the answer to the first request. */
async function openLive(kind: Kind, answer: Answer, options: Omit<UrlServerOptions, 'url'> = {}, query = '') {
  const server = await startServer(answer);
  const failures: string[] = [];
  const onPostFailed = (detail: string): void => void failures.push(detail);
  const opened = openBackend(kind.open(new URL(query, server.url), { onPostFailed, ...options }));
  opened.send(kind.first);
  await opened.messages.next();
  if (kind !== modern) opened.send(initialized);
  if (kind !== modern) await waitFor(() => server.stream() !== undefined, { what: 'the stream' });
  return { ...opened, server, failures };
}

const error = (id: unknown) => ({ jsonrpc: '2.0', id, error: { code: -5, message: 'boom' } });
const jsonAt = (response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}): void =>
  void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));

const beginJson = (response: ServerResponse, status: number): ServerResponse =>
  response.writeHead(status, { 'content-type': 'application/json' });

describe.each(kinds)('a server of $name', (kind) => {
  test.each<[string, Answer, readonly object[]]>([
    ['400 and an error', (r, { id }) => jsonAt(r, 400, error(id)), [error(1)]],
    ['404 and an error that the method is missing', (r, { id }) => jsonAt(r, 404, missing(id)), [missing(1)]],
    ['403 and an error', (r, { id }) => jsonAt(r, 403, error(id)), [error(1)]],
    ['500 and an error', (r, { id }) => jsonAt(r, 500, error(id)), [error(1)]],
    ['429, a time, and an error', (r, { id }) => jsonAt(r, 429, error(id), { 'retry-after': '60' }), [error(1)]],
    ['400 and an error without an id', (r) => jsonAt(r, 400, error(null)), [{ error: error(1).error }]],
    ['500 and an error without an id', (r) => jsonAt(r, 500, error(null)), [{ error: error(1).error }]],
    ['200 and an error without an id', (r) => json(r, error(null)), [{ error: error(1).error }]],
    ['an array with a notification', (r, message) => json(r, [note, answerTo(message)]), [note, answerTo({ id: 1 })]],
    ['the id as text', (r) => json(r, answerTo({ id: '1' })), [{ result: {} }]],
    [
      'a stream that ends with the answer',
      (r, message) => void beginStream(r).end(event(note) + event(answerTo(message))),
      [note, answerTo({ id: 1 })],
    ],
    [
      'a stream that breaks after the answer',
      (r, message) => void beginStream(r).write(event(answerTo(message)), () => r.destroy()),
      [answerTo({ id: 1 })],
    ],
  ])('answers with %s', async (_, answer, expected) => {
    const { send, messages, unanswered, ends } = await openLive(kind, (response, message) =>
      message.id === 1 ? answer(response, message) : json(response, answerTo(message)),
    );
    send(request(1));
    for (const message of expected) expect(JSON.parse(await messages.next())).toMatchObject(message);
    send(request(2));
    expect(JSON.parse(await messages.next())).toEqual(answerTo({ id: 2 }));
    expect([unanswered.items, ends]).toEqual([[], []]);
  });

  test.each<[string, string, Answer]>([
    ['400', 'server_refused', (r) => void r.writeHead(400).end('upstream-secret')],
    ['503', 'server_refused', (r) => void r.writeHead(503).end()],
    ['an error of another form', 'server_refused', (r) => jsonAt(r, 500, { error: { code: 'x' } })],
    ['503 and JSON that breaks', 'server_refused', (r) => void beginJson(r, 503).write('{', () => r.destroy())],
    ['503 and JSON that does not end', 'server_refused', (r) => void beginJson(r, 503).write('{')],
    ['503 and too much JSON', 'server_refused', (r) => void beginJson(r, 503).write(`"${'x'.repeat(20_000)}"`)],
    ['403 and what is no message', 'server_unauthorized', (r) => jsonAt(r, 403, { error: 'no' })],
    ['the error of another request', 'server_refused', (r) => jsonAt(r, 500, error(9))],
    ['a redirect', 'server_refused', (r) => void r.writeHead(307, { location: 'http://127.0.0.1:1/' }).end()],
    ['a broken connection', 'server_unreachable', (r) => void r.destroy()],
    ['a stream that breaks', 'server_unreachable', (r) => void beginStream(r).write(event(note), () => r.destroy())],
    ['a stream cut in an event', 'server_unreachable', (r) => void beginStream(r).write('data: {', () => r.destroy())],
    [
      'an event without end, in drops',
      'line_too_long',
      (r) => {
        beginStream(r).write('data: ');
        const timer = setInterval(() => r.write('x'.repeat(2_000)), 2);
        r.once('close', () => clearInterval(timer));
      },
    ],
    ['too much JSON', 'line_too_long', (r) => json(r, { x: 'x'.repeat(20_000) })],
    ['too large an event', 'line_too_long', (r) => void beginStream(r).write(`data: ${'x'.repeat(20_000)}`)],
    [
      'JSON that is cut',
      'server_unreachable',
      (r) =>
        void r
          .writeHead(200, { 'content-type': 'application/json', 'content-length': 100 })
          .write('{"jsonrpc"', () => r.destroy()),
    ],
  ])('[F28] [P3] [P12] fails a request alone with %s', async (_, reason, answer) => {
    const { send, messages, unanswered, ends, failures } = await openLive(kind, (response, message) =>
      message.id === 1 ? answer(response, message) : json(response, answerTo(message)),
    );
    send(request(1));
    expect(await unanswered.next()).toEqual({ ids: [1], reason });
    send(request(2));
    await messages.next((text) => text === JSON.stringify(answerTo({ id: 2 })));
    expect([ends, failures.length, failures.join().includes('secret')]).toEqual([[], 1, false]);
  });

  test.each<[string, boolean, Answer]>([
    ['with an error is this answer', true, (r, { id }) => jsonAt(r, 403, error(id))],
    [
      'with a challenge is a refusal, whatever its body is',
      false,
      (r, { id }) => jsonAt(r, 403, error(id), { 'www-authenticate': 'Bearer' }),
    ],
    ['with the error of another request is a refusal', false, (r) => jsonAt(r, 403, error(99))],
    ['with a body that is no message is a refusal', false, (r) => jsonAt(r, 403, { error: 'no' })],
    ['whose body breaks is a refusal', false, (r) => void beginJson(r, 403).write('{', () => r.destroy())],
    ['whose body does not end is a refusal', false, (r) => void beginJson(r, 403).write('{')],
    ['whose body is too large is a refusal', false, (r) => void beginJson(r, 403).write(`"${'x'.repeat(20_000)}"`)],
  ])('[P1] [F28] a 403 %s, where clients authorize at the server', async (_, isAnswer, answer) => {
    const { backend, messages, unanswered } = await openLive(kind, answer, { passesChallenges: true });
    const sent = { authorization: 'Bearer a' };
    backend.send(asMessage(request(5)), sent);
    if (isAnswer) expect(JSON.parse(await messages.next())).toEqual(error(5));
    else expect(await unanswered.next()).toEqual({ ids: [5], reason: 'server_unauthorized' });
    expect(challengeTo(sent)?.status).toBe(403);
  });

  test('tells when to come again, rather than an error without an id', async () => {
    const { send, messages, server } = await openLive(kind, (response) =>
      jsonAt(response, 503, error(null), { 'retry-after': '60' }),
    );
    send(request(1));
    expect(JSON.parse(await messages.next())).toMatchObject({ id: 1, error: { data: { retryAfterS: 60 } } });
    expect(server.posted).toEqual([1]);
  });

  test.each([401, 403])('has not started if it refuses the first request with %i, also by an error', async (status) => {
    const { url } = await startServer(
      () => undefined,
      (response) => jsonAt(response, status, error(0)),
    );
    const { send, end, messages } = openBackend(kind.open(url));
    send(kind.first);
    expect(await end()).toMatchObject({ reason: 'failed', isUnauthorized: true });
    expect(messages.items).toEqual([]);
  });

  test.each([301, 302, 303, 307, 308])(
    '[S10] [A07] [S16] [F28] whose redirect with %i is not followed',
    async (status) => {
      const victim = await startVictim();
      const redirect: Answer = (response) =>
        void response.writeHead(status, { location: `http://127.0.0.1:${victim.port}/?secret` }).end();
      const { url } = await startServer(redirect, redirect);
      const start = openBackend(kind.open(url));
      start.send(kind.first);
      // The first POST of HTTP+SSE follows a stream that is there.
      if (kind !== sse) {
        const { reason, detail } = await start.end();
        expect([reason, detail]).toEqual(['failed', expect.stringContaining(`a redirect (${status})`)]);
        expect(detail).not.toContain('secret');
      }
      const { backend, unanswered } = await openLive(kind, redirect);
      backend.send(asMessage(request(1)), { authorization: 'Bearer x' });
      expect(await unanswered.next()).toEqual({ ids: [1], reason: 'server_refused' });
      expect(victim.calls()).toBe(0);
    },
  );

  test('[A11] one of whose answers holds a second one, which is not that to the next POST, of whichever client', async () => {
    const smuggled = JSON.stringify(answerTo({ id: 2 }, { smuggled: true }));
    const second = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${smuggled.length}\r\n\r\n${smuggled}`;
    const { backend, messages, server } = await openLive(kind, (response, message) => {
      if (message.id === 1) response.socket?.write(`HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n${second}`);
      else json(response, answerTo(message));
    });
    backend.send(asMessage(request(1)), { authorization: 'Bearer one' });
    await waitFor(() => server.posted.length === 1, { what: 'the first POST' });
    backend.send(asMessage(request(2)), { authorization: 'Bearer two' });
    expect(JSON.parse(await messages.next((text) => text.includes('"id":2')))).toEqual(answerTo({ id: 2 }));
  });

  test('[F28] [P12] that does not speak HTTP, or is not there', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined).resume();
      socket.end('SSH-2.0-x\r\n');
    });
    const url = new URL(`http://127.0.0.1:${await listening(server)}/mcp?token=secret`);
    for (const detail of ['', 'refused the connection']) {
      const { send, end } = openBackend(kind.open(url));
      send(kind.first);
      const ended = await end();
      expect(ended).toMatchObject({ reason: 'failed', detail: expect.stringContaining(detail) });
      expect(ended.detail).not.toContain('secret');
      if (detail === '') await once(server.close(), 'close');
    }
  });

  test.each([
    ['nginx', 'text/html', '<center>The plain HTTP request was sent to HTTPS port</center>'],
    ['Go', 'text/plain', 'Client sent an HTTP request to an HTTPS server.\n'],
    ['Apache', 'text/html', "Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />"],
    ['Tomcat', 'text/plain', 'Bad Request\nThis combination of host and port requires TLS.\n'],
  ])('says that %s expects TLS at the port', async (_, type, text) => {
    const server = createServer((_request, response) => {
      response.writeHead(400, { 'content-type': type, connection: 'close' }).end(text);
    });
    await expectTls(kind, server, /^http:\S+ expects TLS at this port\. Use https:\/\/ in the URL/);
  });

  test('says that a port that answers with an alert expects TLS', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined).resume();
      socket.end(Buffer.from([0x15, 3, 1, 0, 2, 2, 0x46]));
    });
    await expectTls(kind, server, /expects TLS at this port/);
  });

  test('advises https:// where a server closes a connection without TLS, as Node.js does', async () => {
    await expectTls(kind, createTlsServer(), /If the server has TLS, use https:\/\//);
  });
});

const missing = (id: unknown) => ({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } });

async function expectTls(kind: Kind, server: Server, detail: RegExp): Promise<void> {
  await listen(server);
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  const { send, end } = openBackend(kind.open(url));
  send(kind.first);
  const ended = await end();
  expect(ended).toMatchObject({ reason: 'failed', detail: expect.stringMatching(detail) });
  expect(ended.isOtherTransport ?? false).toBe(false);
}

describe.each(withSession)('a session over $name', (kind) => {
  test('takes an answer that comes with another request', async () => {
    let first: ServerResponse | undefined;
    const { send, messages, unanswered } = await openLive(kind, (response, message) => {
      if (message.id === 1) first = response;
      else json(response, [answerTo({ id: 1 }), answerTo(message)]);
    });
    send(request(1));
    await waitFor(() => first !== undefined, { what: 'the first request' });
    send(request(2));
    for (const id of [1, 2]) expect(JSON.parse(await messages.next())).toEqual(answerTo({ id }));
    first?.destroy();
    send(request(3));
    await messages.next((text) => text.includes('"id":3'));
    expect(unanswered.items).toEqual([]);
  });

  test('[P8] cuts the response to a request that was answered on the stream, and keeps no slot for one that is over', async () => {
    let open: ServerResponse | undefined;
    const { send, server } = await openLive(kind, (response, message) => {
      if (message.id === 1) open = response;
      else response.writeHead(202).end();
    });
    for (let id = 1; id <= 300; id += 1) send(request(id));
    await waitFor(() => server.posted.length === 300, { what: 'more requests than slots' });
    server.stream().write(event(answerTo({ id: 1 })));
    await waitFor(() => open?.destroyed === true, { what: 'the response to be cut' });
  });

  test('[P3] tells at its end what the server has certainly not accepted', async () => {
    const { send, end, server } = await openLive(kind, () => undefined);
    send(note);
    send(request(1));
    await waitFor(() => server.posted.length === 1, { what: 'the notification' });
    server.stream().write(`data: ${'x'.repeat(20_000)}`);
    const { reason, undelivered } = await end();
    expect([reason, undelivered?.map(({ message }) => message.id)]).toEqual(['line_too_long', [1]]);
  });
});

test.each([streamableHttp, modern])('nothing more is told of a cancelled request over $name', async (kind) => {
  const { send, messages, unanswered } = await openLive(
    kind,
    (response, message) => (message.id === 1 ? undefined : json(response, answerTo(message))),
    {},
    '?stateless', // without a session id, the request is cut
  );
  send(request(1));
  send(cancel(1));
  send(request(2));
  await messages.next((text) => text.includes('"id":2'));
  expect([unanswered.items, messages.items.filter((text) => text.includes('"id":1'))]).toEqual([[], []]);
});

test.each([
  [true, 3, 'done'],
  [false, 1, 'failed'],
])(
  '[F28] a message that no connection took is sent again only if it waits: %s',
  async (waitsForServer, tries, outcome) => {
    let tried = 0;
    const body = new ResponseBody({ resume: () => undefined, abort: () => undefined });
    const connection: HttpConnection = {
      async request() {
        tried += 1;
        if (tried < 3) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
        body.end();
        return { status: 202, mediaType: '', headers: {}, body, url };
      },
      noteChallenge: () => false,
      close: async () => undefined,
    };
    const url = new URL('http://127.0.0.1/');
    const receive = { onMessages: () => undefined, onNoise: () => undefined };
    const server = { url, connection, flow: createBackpressureGroup(), maxLineBytes, ...receive };
    const exchange = new Exchange({ message: asMessage(note), headers: noHeaders, ids: [], waitsForServer }, server);
    expect([(await exchange.ended).outcome, tried]).toEqual([outcome, tries]);
  },
);
