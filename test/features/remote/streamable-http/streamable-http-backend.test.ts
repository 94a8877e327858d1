import type { ServerResponse } from 'node:http';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { openStreamableHttp } from '../../../../src/features/remote/streamable-http/streamable-http-backend.ts';
import { openBackend } from '../../../core/backend/open-backend.ts';
import { asMessage } from '../../../support/as-message.ts';
import { loadMs, turn, waitFor } from '../../../support/wait-for.ts';
import {
  answerTo,
  beginStream,
  cancel,
  event,
  greet,
  initialize,
  initialized,
  json,
  note,
  openLive,
  type Received,
  request,
  sessionId,
  startHttpServer,
  welcome,
} from './streamable-http-server.ts';

describe('a server of Streamable HTTP', () => {
  test('gets each message as it was written, with the session and its revision after initialize', async () => {
    const { server, send, backend, messages } = await openLive();
    expect(backend.pid).toBeUndefined();
    const text = '{ "jsonrpc":"2.0", "id": "a\\u0041", "method":"x", "params":{"n":12345678901234567890,"s":"ä🌍"} }';
    expect(send(text)).toBe('sent');
    const { text: arrived, request: posted } = await server.posts.next();
    expect(arrived).toBe(text);
    expect(posted.headers).toMatchObject({
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
      'mcp-session-id': sessionId,
      'mcp-protocol-version': '2025-11-25',
    });
    expect(JSON.parse(await messages.next())).toEqual({ jsonrpc: '2.0', id: 'aA', result: {} });
    const [first] = server.posts.items;
    expect(first?.request.headers).not.toHaveProperty('mcp-session-id');
    expect(first?.request.headers).not.toHaveProperty('mcp-protocol-version');
  });

  test('may have no sessions', async () => {
    const { server, send, messages } = await openLive({
      onInitialize: ({ message, response }) => json(response, answerTo(message, { protocolVersion: '2025-06-18' })),
    });
    send(request(1));
    const { request: posted } = await server.posts.next();
    expect(posted.headers).not.toHaveProperty('mcp-session-id');
    expect(posted.headers['mcp-protocol-version']).toBe('2025-06-18');
    expect(await messages.next()).toContain('"id":1');
  });

  test('gets nothing before it has answered initialize, and no request before it has accepted a notification', async () => {
    const held: Received[] = [];
    const server = await startHttpServer({
      onInitialize: (received) => void held.push(received),
      onPost: (received) => void held.push(received),
    });
    const { send } = openBackend((events) => openStreamableHttp({ url: server.url }, events));
    for (const message of [initialize, initialized, request(1), request(2)]) expect(send(message)).toBe('sent');
    await waitFor(() => held.length === 1, { what: 'initialize' });
    await turn();
    expect(server.posts.items.map(({ message }) => message.method)).toEqual(['initialize']);
    greet(held[0] as Received);
    await waitFor(() => held.length === 2, { what: 'the notification' });
    await turn();
    expect(server.posts.items.map(({ message }) => message.method).slice(1)).toEqual(['notifications/initialized']);
    held[1]?.response.writeHead(202).end();
    await waitFor(() => held.length === 4, { what: 'two requests at once' });
  });

  test('answers as JSON or as SSE; each message is known by the requests that it came beside', async () => {
    const { send, messages, origins } = await openLive({
      onPost({ message, response }) {
        if (message.id === undefined) return void response.writeHead(202).end();
        if (message.id === 1) return void json(response, answerTo(message));
        beginStream(response).write(`id: 1\ndata: \n\n: c\n\n${event(note)}event: other\ndata: 1\n\n`);
        response.end(event(answerTo(message)));
      },
    });
    send(request(1));
    expect(JSON.parse(await messages.next())).toEqual(answerTo({ id: 1 }));
    send(request(2));
    expect(JSON.parse(await messages.next())).toEqual(note);
    expect(JSON.parse(await messages.next())).toEqual(answerTo({ id: 2 }));
    expect(origins).toEqual([[0], [1], [2], [2]]);
  });

  test('may begin its JSON with a byte order mark', async () => {
    const { send, messages } = await openLive({
      onPost: ({ message, response }) =>
        message.id === undefined
          ? void response.writeHead(202).end()
          : void response
              .writeHead(200, { 'content-type': 'application/json' })
              .end(`\ufeff${JSON.stringify(answerTo(message))}`),
    });
    send(request(1));
    expect(await messages.next()).toBe(JSON.stringify(answerTo({ id: 1 })));
  });

  test('may write its JSON over several lines', async () => {
    const { send, messages } = await openLive({
      onPost: ({ message, response }) =>
        message.id === undefined
          ? void response.writeHead(202).end()
          : void response
              .writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
              .end(JSON.stringify(answerTo(message), null, 2)),
    });
    send(request(1));
    const text = await messages.next();
    expect([text.includes('\n'), JSON.parse(text)]).toEqual([false, answerTo({ id: 1 })]);
  });

  test('is asked for its GET stream once it has accepted initialized; what it says there is of no request', async () => {
    const { server, messages, origins } = await openLive({
      onGet: ({ response }) => void beginStream(response).write(event(note)),
    });
    const { request: got } = await server.gets.next();
    expect(got.headers).toMatchObject({
      accept: 'text/event-stream',
      'mcp-session-id': sessionId,
      'mcp-protocol-version': '2025-11-25',
    });
    expect(got.headers).not.toHaveProperty('last-event-id');
    expect(JSON.parse(await messages.next())).toEqual(note);
    expect(origins.at(-1)).toEqual([]);
  });

  test('[P3] hears nothing more of its client before that stream is open: what it says there meanwhile would be lost', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    for (const isOpened of [true, false]) {
      const { server, send, messages } = await openLive({ onGet: () => undefined });
      send(request(1));
      const { response } = await server.gets.next();
      // What was sent at the same time would be here by then.
      for (let trip = 0; trip < 3; trip++) await fetch(server.url, { method: 'DELETE' });
      expect(server.posts.items).toHaveLength(2);
      if (isOpened) beginStream(response).flushHeaders();
      else await vi.advanceTimersByTimeAsync(250); // it may send the head with its first event
      expect(await messages.next()).toContain('"id":1');
    }
  });

  test.each([405, 404, 400])('need not have a GET stream: %i', async (status) => {
    const { server, send, messages, ends } = await openLive({
      onGet: ({ response }) => void response.writeHead(status).end('no'),
    });
    await server.gets.next();
    send(request(1));
    expect(await messages.next()).toContain('"id":1');
    expect([server.gets.items.length, ends]).toEqual([1, []]);
  });

  test('gets a response of its client while the call that asked is open, and a cancellation', async () => {
    let call: Received | undefined;
    const { server, send, messages } = await openLive({
      onPost(received) {
        const { message, response } = received;
        if (message.id === 1) {
          call = received;
          beginStream(response).write(event({ jsonrpc: '2.0', id: 'q', method: 'roots/list' }));
        } else response.writeHead(202).end();
      },
    });
    send(request(1));
    await messages.next();
    send(answerTo({ id: 'q' }, { roots: [] }));
    send(cancel(1));
    await server.posts.next();
    expect((await server.posts.next()).message).toMatchObject({ id: 'q' });
    expect((await server.posts.next()).message).toMatchObject({ method: 'notifications/cancelled' });
    call?.response.end(event(answerTo({ id: 1 })));
    expect(await messages.next()).toContain('"id":1');
  });

  test('gets a cancellation also of a call whose answer it holds back, and not before the call', async () => {
    const { server, send } = await openLive({
      onPost: ({ message, response }) => void (message.id ?? response.writeHead(202).end()),
    });
    send(request(1));
    send(cancel(1));
    expect((await server.posts.next()).message).toMatchObject({ id: 1 });
    expect((await server.posts.next()).message).toMatchObject({ method: 'notifications/cancelled' });
  });

  test('is told of the end of its session only when that is for good', async () => {
    const deleted: Received[] = [];
    const onDelete = (received: Received) => {
      deleted.push(received);
      received.response.writeHead(200).end();
    };
    const kept = await openLive({ onDelete });
    await kept.backend.close();
    expect(deleted).toEqual([]);
    const ended = await openLive({ onDelete });
    await ended.backend.close({ isForGood: true });
    expect(deleted.map(({ request: { headers } }) => headers['mcp-session-id'])).toEqual([sessionId]);
    expect(ended.ends).toEqual([
      { reason: 'closed', detail: 'The gateway closed the connection or process of the server.' },
    ]);
    expect(ended.send(note)).toBe('ended');
  });
});

describe('a stream that breaks', () => {
  /** A server whose calls are streams that the test writes. */
  const openBroken = async (onGet: (received: Received, count: number) => void) => {
    let gets = 0;
    const live = await openLive({
      onPost({ message, response }) {
        if (message.id === undefined) return void response.writeHead(202).end();
        beginStream(response).write(`retry: 60\n${event(note, 'e1')}`, () => setImmediate(() => response.destroy()));
      },
      onGet(received) {
        if (received.request.headers['last-event-id'] === undefined) return void received.response.writeHead(405).end();
        gets += 1;
        onGet(received, gets);
      },
    });
    await live.server.gets.next();
    return live;
  };

  test('is resumed after its last event, as often as it needs; nothing comes twice', async () => {
    const { server, send, messages, origins, unanswered } = await openBroken(({ response }, count) => {
      beginStream(response);
      if (count === 1) response.write(`${event({ ...note, n: 2 }, 'e2')}data: {"half`, () => response.destroy());
      else if (count === 2) response.end();
      else response.write(event(answerTo({ id: 1 }), 'e3'));
    });
    send(request(1));
    const texts = [await messages.next(), await messages.next(), await messages.next()].map((text) => JSON.parse(text));
    expect(texts).toEqual([note, { ...note, n: 2 }, answerTo({ id: 1 })]);
    const resumes = server.gets.items.slice(1).map(({ request: { headers } }) => headers['last-event-id']);
    expect(resumes).toEqual(['e1', 'e2', 'e2']);
    expect(origins.slice(1)).toEqual([[1], [1], [1]]);
    expect(unanswered.items).toEqual([]);
  });

  test('and has no event ids leaves its requests unanswered; one that is answered is not asked for again', async () => {
    const { send, unanswered, server, messages } = await openLive({
      onPost({ message, response }) {
        if (message.id === undefined) return void response.writeHead(202).end();
        const what = event(message.id === 1 ? note : answerTo(message));
        beginStream(response).write(what, () => setImmediate(() => response.destroy()));
      },
    });
    await server.gets.next();
    send(request(1));
    send(request(2));
    expect(await unanswered.next()).toEqual({ ids: [1], reason: 'server_unreachable' });
    await waitFor(() => messages.items.length === 3, { what: 'a note and an answer' });
    expect([server.gets.items.length, unanswered.items.length]).toEqual([1, 1]);
  });

  test.each([409, 503])('is asked for again after %i', async (status) => {
    const { send, messages } = await openBroken(({ response }, count) =>
      count < 3
        ? void response.writeHead(status).end()
        : void beginStream(response).end(event(answerTo({ id: 1 }), 'e2')),
    );
    send(request(1));
    await messages.next();
    expect(await messages.next()).toContain('"id":1');
  });

  test.each([400, 405])('and is not resumed (%i) leaves its requests unanswered', async (status) => {
    const { send, unanswered } = await openBroken(({ response }) => void response.writeHead(status).end());
    send(request(1));
    expect(await unanswered.next()).toEqual({ ids: [1], reason: 'server_unreachable' });
  });

  test('the GET stream too is resumed, from its beginning if it had no ids', async () => {
    const { server, messages } = await openLive({
      onGet({ response, request: { headers } }) {
        const from = headers['last-event-id'];
        const what = from === undefined ? event(note, 'g1') : event({ ...note, from });
        beginStream(response).write(`retry: 50\n${what}`, () => setImmediate(() => response.destroy()));
      },
    });
    expect(JSON.parse(await messages.next())).toEqual(note);
    expect(JSON.parse(await messages.next())).toEqual({ ...note, from: 'g1' });
    expect(JSON.parse(await messages.next())).toEqual({ ...note, from: 'g1' });
    expect(server.gets.items.length).toBeGreaterThan(2);
  });

  test.each([
    ['of credentials, which the next request may bring anew', [401, 403]],
    ['by a proxy, as long as the server knows the session', [404, 400]],
  ])('the GET stream is opened again after a refusal %s', async (_, refusals) => {
    const statuses = [...refusals];
    let opened = 0;
    const { messages } = await openLive({
      onGet({ response }) {
        const status = opened === 0 ? undefined : statuses.shift();
        if (status !== undefined) return void response.writeHead(status).end();
        opened += 1;
        beginStream(response).write(
          `retry: 50\n${event({ ...note, opened })}`,
          () => opened === 1 && response.destroy(),
        );
      },
    });
    for (const n of [1, 2]) expect(JSON.parse(await messages.next())).toEqual({ ...note, opened: n });
    expect(statuses).toEqual([]);
  });

  test('and had an empty id last cannot be resumed: its request is unanswered at once', async () => {
    const { send, unanswered, server } = await openLive({
      onPost({ message, response }) {
        if (message.id === undefined) return void response.writeHead(202).end();
        beginStream(response).write(`${event(note, 'e1')}${event(note, '')}`, () => response.destroy());
      },
    });
    await server.gets.next();
    send(request(1));
    expect(await unanswered.next()).toEqual({ ids: [1], reason: 'server_unreachable' });
    expect(server.gets.items).toHaveLength(1);
  });

  test('with an event id beyond Latin-1 is resumed with the bytes of that id in UTF-8', async () => {
    const { send, messages, server } = await openLive({
      onGet: ({ request: { headers }, response }) =>
        headers['last-event-id'] === undefined
          ? void response.writeHead(405).end()
          : void beginStream(response).end(event(answerTo({ id: 1 }), 'x')),
      onPost: ({ message, response }) =>
        message.id === undefined
          ? void response.writeHead(202).end()
          : void beginStream(response).write('id: →1\nretry: 50\ndata:\n\n', () => response.end()),
    });
    send(request(1));
    expect(JSON.parse(await messages.next())).toEqual(answerTo({ id: 1 }));
    const sent = server.gets.items.at(-1)?.request.headers['last-event-id'] ?? '';
    expect(Buffer.from(String(sent), 'latin1').toString()).toBe('→1');
  });
});

describe('an answer that comes on the GET stream', () => {
  const open = async (answerPost: (response: ServerResponse) => void) => {
    const live = await openLive({
      onPost: ({ message, response }) =>
        message.id === undefined ? void response.writeHead(202).end() : answerPost(response),
      onGet: ({ response }) => void beginStream(response).flushHeaders(),
    });
    return { ...live, stream: (await live.server.gets.next()).response };
  };
  const ways: [string, (response: ServerResponse) => void][] = [
    ['202', (r) => void r.writeHead(202).end()],
    ['204', (r) => void r.writeHead(204).end()],
    ['an empty stream', (r) => void beginStream(r).end()],
    ['a stream that ends', (r) => void beginStream(r).end(event(note))],
  ];

  test.each(ways)('is taken after a POST that got %s', async (_, answerPost) => {
    const { send, server, stream, messages, unanswered, ends } = await open(answerPost);
    send(request(1));
    send(request(2));
    await server.posts.next();
    const { response } = await server.posts.next();
    await waitFor(() => response.closed, { what: 'the end of the POST' });
    stream.write(event(answerTo({ id: 1 })));
    await waitFor(() => messages.items.some((text) => text === JSON.stringify(answerTo({ id: 1 }))), {
      what: 'the answer',
    });
    expect([unanswered.items, ends]).toEqual([[], []]);
    stream.end(); // the answer to the other one can no longer come
    expect(await unanswered.next()).toMatchObject({ ids: [2] });
  });

  test.each([
    ['HTML', (r: ServerResponse) => void r.writeHead(200, { 'content-type': 'text/html' }).end('<p>')],
    ['a break', (r: ServerResponse) => void beginStream(r).write(event(note), () => r.destroy())],
  ])('is not awaited after %s', async (_, answerPost) => {
    const { send, unanswered } = await open(answerPost);
    send(request(1));
    expect(await unanswered.next()).toMatchObject({ ids: [1] });
  });
});

test('a request on the stream that answers initialized comes at any time, and holds up nothing', async () => {
  let stream: ServerResponse | undefined;
  const { send, server, messages } = await openLive({
    onPost({ message, response }) {
      if (message.id === undefined) {
        stream = beginStream(response);
        stream.flushHeaders();
      } else json(response, answerTo(message));
    },
  });
  await server.gets.next();
  send(request(1));
  expect(await messages.next()).toContain('"id":1');
  await new Promise((resolve) => setTimeout(resolve, 1_200)); // longer than other streams of notifications are kept
  stream?.write(event({ jsonrpc: '2.0', id: 'q', method: 'roots/list' }));
  expect(await messages.next()).toContain('roots/list');
});

test.each([
  ['at once where it has no sessions', { protocolVersion: '2025-11-25', capabilities: {} }, {}, true],
  [
    'later where it can be told',
    { protocolVersion: '2025-11-25', capabilities: {} },
    { 'mcp-session-id': sessionId },
    false,
  ],
])('a cancelled call is cut off at its server %s', async (_, result, headers, isCut) => {
  const { send, server } = await openLive({
    onInitialize: ({ message, response }) => json(response, answerTo(message, result), headers),
    onPost: ({ message, response }) =>
      message.id === undefined ? void response.writeHead(202).end() : beginStream(response).flushHeaders(),
  });
  send(request(1));
  const { response } = await server.posts.next();
  send(cancel(1));
  await server.posts.next();
  if (isCut) await waitFor(() => response.destroyed, { what: 'the call to be cut off' });
  else expect(response.destroyed).toBe(false);
});

test('[P12] a session id may be empty, or long', async () => {
  for (const id of ['', 'x'.repeat(8 * 1024)]) {
    const { send, server, ends } = await openLive({
      onInitialize: ({ message, response }) => json(response, answerTo(message, welcome), { 'mcp-session-id': id }),
    });
    send(request(1));
    expect((await server.posts.next()).request.headers['mcp-session-id']).toBe(id === '' ? undefined : id);
    expect(ends).toEqual([]);
  }
});

describe('a session that the server has forgotten', () => {
  test.each([404, 400])('is the end, with what was not taken: %i', async (status) => {
    let isForgotten = false;
    const { send, end, server } = await openLive({
      onPost({ message, response }) {
        if (isForgotten) response.writeHead(status).end();
        else if (message.id === undefined) response.writeHead(202).end();
        else beginStream(response).flushHeaders(); // open for ever
      },
    });
    send(request('running'));
    await server.posts.next();
    isForgotten = true;
    send(request('a'));
    send(request('b'));
    send(note);
    const { reason, detail, undelivered: untaken } = await end();
    expect([reason, detail]).toEqual(['exited', `${server.url.origin} no longer knows the session.`]);
    expect(untaken?.map(({ message }) => JSON.parse(message.text.toString()))).toEqual([
      request('a'),
      request('b'),
      note,
    ]);
  });

  const says = (message: string, id: unknown = null, code = -32000) => ({
    jsonrpc: '2.0',
    id,
    error: { code, message },
  });
  const jsonAt = (status: number, value: (id: unknown) => unknown) => (response: ServerResponse, id: unknown) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value(id)));
  const losses: [string, (response: ServerResponse, id: unknown) => void][] = [
    ['400 and no body', (r) => void r.writeHead(400).end()],
    ['400 and the id', jsonAt(400, (id) => says('Bad Request: No valid session ID provided', id))],
    ['400, the id, and no reason', jsonAt(400, (id) => says('Bad Request', id))],
    ['404 and the id', jsonAt(404, (id) => says('Session not found', id, -32001))],
    ['410', (r) => void r.writeHead(410).end()],
    ['500 and an error', jsonAt(500, () => says('Invalid session ID'))],
    ['200, an error and the id', jsonAt(200, (id) => says('session not found', id))],
    ['200 and an error without one', jsonAt(200, () => ({ ...says('Invalid session'), id: undefined }))],
    ['200 and an error with null', jsonAt(200, () => says('Server not initialized'))],
    ['200 and its own JSON', jsonAt(200, () => ({ error: 'Session expired' }))],
    ['200 and a text', (r) => void r.writeHead(200, { 'content-type': 'text/plain' }).end('Unknown session')],
    ['a stream with an error', (r, id) => void beginStream(r).end(event(says('Session not found', id)))],
  ];

  test.each(losses)('is the end, and the request is given back: %s', async (_, lose) => {
    const { send, end, messages } = await openLive({
      onPost: ({ message, response }) =>
        message.id === undefined ? void response.writeHead(202).end() : lose(response, message.id),
    });
    send(request(7));
    const { reason, undelivered } = await end();
    expect([reason, undelivered?.map(({ message }) => message.id)]).toEqual(['exited', [7]]);
    expect(messages.items).toHaveLength(1); // the answer to initialize
  });

  test.each(losses.slice(1))(
    'is not one that answers pings, and the client gets what it says: %s',
    async (what, lose) => {
      const { send, messages, unanswered, ends } = await openLive({
        onPost: ({ message, response }) =>
          message.method === 'ping'
            ? json(response, answerTo(message))
            : message.id === 7
              ? lose(response, message.id)
              : json(response, answerTo(message)),
      });
      send(request(7));
      // 404 for our session is what the specification has for a lost one.
      if (what.startsWith('404')) return void (await waitFor(() => ends.length === 1, { what: 'the end' }));
      await waitFor(() => unanswered.items.length + messages.items.length > 1, { what: 'an answer' });
      if (what.includes('the id') || what.startsWith('a stream'))
        expect(JSON.parse(messages.items[1] ?? '')).toMatchObject({ id: 7, error: {} });
      send(request(8));
      await waitFor(() => messages.items.some((text) => text.includes('"id":8')), { what: 'the next answer' });
      expect(ends).toEqual([]);
    },
  );

  test('is not one that only lacks a method', async () => {
    const { send, messages, ends } = await openLive({
      onPost: ({ message, response }) =>
        message.id === undefined
          ? void response.writeHead(202).end()
          : jsonAt(404, (id) => says('Method not found', id, -32601))(response, message.id),
    });
    send(request(7, 'x/y'));
    await messages.next();
    expect([JSON.parse(messages.items[1] ?? '').error.code, ends]).toEqual([-32601, []]);
  });

  test('is no reason to send the same message again and again', async () => {
    const message = asMessage(request(7));
    const refused: string[] = [];
    for (let session = 0; session < 3; session++) {
      const { backend, ends, unanswered } = await openLive({
        onPost: ({ message: { id }, response }) => void response.writeHead(id === undefined ? 202 : 400).end(),
      });
      backend.send(message);
      await waitFor(() => ends.length + unanswered.items.length === 1, { what: 'an outcome' });
      refused.push(ends[0]?.reason ?? unanswered.items[0]?.reason ?? '');
    }
    expect(refused).toEqual(['exited', 'exited', 'server_refused']);
  });

  test('is not every one of which a message is refused with 400: that message alone is', async () => {
    const { send, unanswered, messages } = await openLive({
      onPost: ({ message, response }) =>
        message.id === 'bad' ? void response.writeHead(400).end() : json(response, answerTo(message)),
    });
    send(request('bad'));
    expect(await unanswered.next()).toEqual({ ids: ['bad'], reason: 'server_refused' });
    send(request('good'));
    expect(JSON.parse(await messages.next())).toEqual(answerTo({ id: 'good' }));
  });

  test.each([404, 400])('is noticed by its GET stream, which is refused with %i', async (status) => {
    const { end } = await openLive({
      onGet: ({ response, request: { headers } }) =>
        headers['last-event-id'] === undefined
          ? void beginStream(response).write(`retry: 50\n${event(note, 'g')}`, () => response.destroy())
          : void response.writeHead(status).end(),
      onPost: ({ message, response }) => void response.writeHead(message.method === 'ping' ? status : 202).end(),
    });
    expect(await end()).toMatchObject({ reason: 'exited' });
  });

  test('is not one whose GET stream was never open: the server may have none', async () => {
    const statuses = [503, 404];
    const { ends, send, messages, server } = await openLive({
      onGet: ({ response }) => void response.writeHead(statuses.shift() ?? 500).end(),
    });
    await waitFor(() => server.gets.items.length === 2, { what: 'the second request for the stream' });
    send(request(1));
    expect(JSON.parse(await messages.next())).toEqual(answerTo({ id: 1 }));
    expect([ends, statuses]).toEqual([[], []]);
  });

  test.each([
    ['has no ids of sessions', false],
    ['has no GET', true],
  ])('is not one of a server that %s: a stream that cannot be resumed fails its request alone', async (_, hasId) => {
    const { ends, send, unanswered, server } = await openLive({
      ...(!hasId && {
        onInitialize: ({ message, response }) =>
          json(response, answerTo(message, { protocolVersion: '2025-06-18', capabilities: {} })),
      }),
      onGet: ({ response }) => void response.writeHead(404).end(),
      onPost({ message, response }) {
        if (message.id === 'broken') beginStream(response).write(event(note, 'e'), () => response.destroy());
        else if (message.method === 'ping') json(response, answerTo(message));
        else if (message.id === undefined) response.writeHead(202).end();
      },
    });
    send(request('slow'));
    send(request('broken'));
    expect(await unanswered.next()).toEqual({ ids: ['broken'], reason: 'server_unreachable' });
    expect([ends, unanswered.items.length]).toEqual([[], 1]);
    expect(server.gets.items.length).toBeGreaterThanOrEqual(2);
  });

  test('is none if there was none: the request is refused', async () => {
    const { send, unanswered } = await openLive({
      onInitialize: ({ message, response }) => json(response, answerTo(message, { protocolVersion: '2025-06-18' })),
      onPost: ({ message, response }) => void response.writeHead(message.id === undefined ? 202 : 404).end(),
    });
    send(request(1));
    expect(await unanswered.next()).toEqual({ ids: [1], reason: 'server_refused' });
  });
});

describe('a server that is away', () => {
  test('[F28] for a moment: what it has not seen waits for it', async () => {
    const { server, send, messages, ends } = await openLive();
    await server.stop();
    expect([send(request(1)), send(note), send(request(2))]).toEqual(['sent', 'sent', 'sent']);
    await turn();
    await server.start();
    const answers = [JSON.parse(await messages.next()), JSON.parse(await messages.next())];
    expect(answers.map(({ id }) => id).sort()).toEqual([1, 2]);
    expect(ends).toEqual([]);
  });

  test('[F28] and refuses connections: each request is unanswered within two seconds, and is not to be sent again', async () => {
    const { server, send, unanswered } = await openLive();
    await server.stop();
    const startedAt = performance.now();
    send(request(1));
    send(request(2, 'tools/list'));
    const failed = [await unanswered.next(), await unanswered.next()];
    expect(failed.map(({ ids, reason }) => [...ids, reason]).sort()).toEqual(
      [1, 2].map((id) => [id, 'server_unreachable']),
    );
    expect(performance.now() - startedAt).toBeLessThan(2_000 + loadMs);
  });

  test('[F28] at the start: failed, with a clear sentence', async () => {
    const server = await startHttpServer();
    await server.stop();
    const { send, end } = openBackend((events) => openStreamableHttp({ url: server.url }, events));
    send(initialize);
    const { reason, detail } = await end();
    expect([reason, detail]).toEqual(['failed', expect.stringContaining('refused the connection')]);
    expect(detail).not.toContain('secret');
  });

  test('[F28] and breaks a call off leaves it unanswered; it is not posted twice', async () => {
    const { server, send, unanswered } = await openLive({
      onPost: ({ message, response }) =>
        message.id === undefined ? void response.writeHead(202).end() : response.destroy(),
    });
    send(request(1));
    expect(await unanswered.next()).toEqual({ ids: [1], reason: 'server_unreachable' });
    expect(server.posts.items.filter(({ message }) => message.id === 1)).toHaveLength(1);
  });
});

test('[P8] requests that are open at once have a limit, and so have the bytes that wait', async () => {
  const { send, unanswered, server } = await openLive(
    { onPost: ({ message, response }) => void (message.id ?? response.writeHead(202).end()) },
    { maxQueuedBytes: 100_000 },
  );
  for (let id = 1; id <= 257; id++) send(request(id));
  expect(await unanswered.next()).toEqual({ ids: [257], reason: 'server_busy' });
  await waitFor(() => server.posts.items.length === 2 + 256, { what: 'all others' });
  const large = { params: { x: 'x'.repeat(95_000) } };
  expect(send({ ...request(258), ...large })).toBe('full');
  // What is no request has as much again: it may be what ends one.
  expect([send({ ...note, ...large }), send({ ...note, ...large })]).toEqual(['sent', 'full']);
});

test('a burst of requests goes to a server that answers each, however many they are', async () => {
  const { send, unanswered, messages } = await openLive({
    onPost: ({ message, response }) => void setTimeout(() => json(response, answerTo(message)), 2),
  });
  for (let id = 1; id <= 600; id++) send(request(id));
  await waitFor(() => messages.items.length === 601, { what: 'all answers' }); // that to initialize is one
  expect(unanswered.items).toEqual([]);
});

test('[P8] pause leaves what the server writes with the server; resume goes on', async () => {
  let stream: Received['response'] | undefined;
  const { backend, messages } = await openLive({
    onGet({ response }) {
      stream = beginStream(response);
      response.write(event(note));
    },
  });
  await messages.next();
  backend.pause();
  const big = event('x'.repeat(100_000));
  for (let i = 0; i < 200; i++) stream?.write(big);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(messages.items).toHaveLength(2);
  expect(stream?.writableLength).toBeGreaterThan(0);
  backend.resume();
  await waitFor(() => messages.items.length === 202, { what: 'all messages' });
});

test('close cuts all connections at once, is told once, and drops what waits', async () => {
  const { backend, server, send, ends } = await openLive({
    onPost: ({ message, response }) => void (message.id ?? response.writeHead(202).end()),
    onGet: ({ response }) => void beginStream(response).flushHeaders(),
  });
  send(request(1));
  const [{ response: call }, { response: stream }] = [await server.posts.next(), await server.gets.next()];
  const gone = Promise.all([call, stream].map((each) => new Promise((resolve) => each.once('close', resolve))));
  await Promise.all([backend.close(), backend.close()]);
  await gone;
  expect(ends).toEqual([{ reason: 'closed', detail: 'The gateway closed the connection or process of the server.' }]);
});
