import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { openSse, type SseOptions } from '../../../../src/features/remote/sse/sse-backend.ts';
import { openBackend } from '../../../core/backend/open-backend.ts';
import { asMessage } from '../../../support/as-message.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { accept, beginStream, endpointPath, event, greet, open, openLive, startSseServer } from './sse-server.ts';

const request = (id: number | string, method = 'tools/call') => ({ jsonrpc: '2.0', id, method, params: {} });
const note = { jsonrpc: '2.0', method: 'notifications/x' };
const initialize = JSON.stringify(request(0, 'initialize'));

describe('a server of 2024-11-05', () => {
  test('[R8.01] [R8.06] gets each message as it was written, at its endpoint alone; those that are no requests in order and one at a time', async () => {
    let running = 0;
    let most = 0;
    const { server, send, backend } = await openLive({
      onPost(received) {
        running += 1;
        most = Math.max(most, running);
        setTimeout(() => {
          running -= 1;
          accept(received);
        }, 2);
      },
    });
    expect(backend.pid).toBeUndefined();
    const texts = [initialize, '{ "n": 12345678901234567890 }', '{"s":"\\u0041ä🌍"}', `"${'x'.repeat(300_000)}"`];
    for (let i = 0; i < 20; i++) texts.push(JSON.stringify({ ...note, params: { i } }));
    for (const text of texts) expect(send(text)).toBe('sent');
    for (const text of texts) expect((await server.posts.next()).text).toBe(text);
    expect(most).toBe(1);
    expect(new Set(server.requests)).toEqual(new Set(['GET /sse', `POST ${endpointPath}`]));
    // One connection for the stream, the others shared by all POSTs: the last one may not yet be free for the next.
    expect(server.connections()).toBeLessThanOrEqual(3);
  });

  test('may name its endpoint late: what was sent before waits, within maxQueuedBytes', async () => {
    const { server, send, stream } = await openLive(
      { onGet: (response) => void beginStream(response).flushHeaders() },
      {
        maxQueuedBytes: 1000,
      },
    );
    const text = JSON.stringify({ ...request(1), params: { x: 'x'.repeat(500) } });
    expect([send(text), send(text), send('1')]).toEqual(['sent', 'full', 'sent']);
    // What is no request has as much again: it may be what ends one.
    const said = JSON.stringify('x'.repeat(900));
    expect([send(said), send(said)]).toEqual(['sent', 'full']);
    stream.write(event('endpoint', endpointPath));
    expect([(await server.posts.next()).text, (await server.posts.next()).text]).toEqual([text, '1']);
  });

  test.each([
    ['a path', '/messages/1', '/messages/1'],
    ['a relative reference', 'messages?x=%20#y', '/a/messages?x=%20'],
    ['JSON', '{"uri": "/messages/1"}', '/messages/1'],
  ])('[R8.01] may name its endpoint as %s', async (_, data, path) => {
    const server = await startSseServer({
      onGet: (response) => void beginStream(response).write(event('endpoint', data)),
    });
    open(new URL('/a/sse?key=1', server.origin)).send(initialize);
    await server.posts.next();
    expect(server.requests).toEqual(['GET /a/sse?key=1', `POST ${path}`]);
  });

  test('may name its endpoint as a URL of the same origin', async () => {
    const server = await startSseServer({
      onGet: (response, { headers }) => void beginStream(response).write(event('endpoint', `HTTP://${headers.host}/m`)),
    });
    open(server.url).send(initialize);
    await server.posts.next();
    expect(server.requests).toContain('POST /m');
  });

  test('[R8.02] speaks in message events and in events without a type; others and comments are ignored', async () => {
    const { stream, messages } = await openLive();
    stream.write(': ping\n\nretry: 5\n\nid: 7\nevent: message\ndata: {"a":1}\n\nevent: other\ndata: {"b":2}\n\n');
    stream.write('nonsense\ndata:{"c":\ndata: 3}\n\nevent: message\n\ndata: {"d":4}\n\n');
    await waitFor(() => messages.items.length === 3, { what: 'three messages' });
    expect(messages.items).toEqual(['{"a":1}', '{"c": 3}', '{"d":4}']);
  });

  test.each([202, 200, 204])('[R8.03] takes a POST with %i, and no body is needed', async (status) => {
    const { send, server, stream, messages, failures } = await openLive({
      onPost: ({ response }) => void response.writeHead(status).end(),
    });
    send(initialize);
    send(note);
    await server.posts.next();
    await server.posts.next();
    stream.write(event('message', '{"id":0}'));
    expect(await messages.next()).toBe('{"id":0}');
    expect(failures).toEqual([]);
  });

  test("gets its client's headers with the stream that is opened, and with each message those that came with it", async () => {
    const server = await startSseServer();
    let newest: Record<string, string> = { authorization: 'Bearer 1' };
    const backend = openBackend((events) =>
      openSse({ url: server.url, headers: { 'x-own': 'o' } }, events, { headers: () => newest }),
    ).backend;
    newest = { authorization: 'Bearer 2' };
    backend.send(asMessage(initialize), { authorization: 'Bearer 3', 'x-team': 't' });
    backend.send(asMessage('2'));
    backend.send(asMessage('3'), { authorization: 'Bearer 4' });
    const seen = [
      (await server.posts.next()).request.headers,
      (await server.posts.next()).request.headers,
      (await server.posts.next()).request.headers,
    ];
    expect(seen.map((headers) => [headers.authorization, headers['x-team'], headers['x-own']])).toEqual([
      ['Bearer 3', 't', 'o'],
      [undefined, undefined, 'o'],
      ['Bearer 4', undefined, 'o'],
    ]);
    expect((await server.streams.next()).req.headers).toMatchObject({ authorization: 'Bearer 1', 'x-own': 'o' });
  });

  test('may take longer for its answer than for the connection: a host may have to wake up', async () => {
    const server = await startSseServer({
      onGet: (response) => void setTimeout(() => beginStream(response).write(event('endpoint', endpointPath)), 300),
    });
    open(server.url, { connectTimeoutMs: 100 }).send('1');
    expect((await server.posts.next()).text).toBe('1');
  });

  test('gets the configured headers with every request', async () => {
    const headers = { authorization: 'Bearer s3cret', 'x-team': 'a, b' };
    const server = await startSseServer({
      onGet: (response, request) => {
        expect(request.headers).toMatchObject({ ...headers, accept: 'text/event-stream' });
        beginStream(response).write(event('endpoint', endpointPath));
      },
    });
    open(server.url, { headers }).send(initialize);
    const { request: post } = await server.posts.next();
    expect(post.headers).toMatchObject({ ...headers, 'content-type': 'application/json' });
    expect(post.headers['content-length']).toBe(String(initialize.length));
  });
});

describe('an answer in the body of a POST', () => {
  const answer = '{"jsonrpc":"2.0","id":1,"result":{"n":12345678901234567890}}';

  test.each([
    ['JSON', 'application/json; charset=utf-8', answer],
    ['SSE', 'text/event-stream', `: hello\n\n${event('message', answer)}`],
  ])('is taken as %s', async (_, type, body) => {
    const { send, messages } = await openLive({
      onPost: ({ response }) => void response.writeHead(200, { 'content-type': type }).end(body),
    });
    send(request(1));
    expect(await messages.next()).toBe(answer);
  });

  test('is ignored if it is no message', async () => {
    const bodies = ['{"status":"ok"}', 'null', 'Accepted', '{', ''];
    const { send, server, stream, messages } = await openLive({
      onPost: ({ response }) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).end(bodies[server.posts.items.length - 1]),
    });
    for (const _ of bodies) send(request(1));
    await waitFor(() => server.posts.items.length === bodies.length, { what: 'all POSTs' });
    stream.write(event('message', answer));
    await messages.next();
    expect(messages.items).toEqual([answer]);
  });

  test('that is a stream does not hold up the next message', async () => {
    const { send, server, messages } = await openLive({
      onPost: ({ response, text }) =>
        text.includes('"id":1')
          ? void beginStream(response).flushHeaders()
          : void response.writeHead(202).end(() => server.posts.items[0]?.response.write(event('message', answer))),
    });
    send(request(1));
    send(request(2));
    expect(await messages.next()).toBe(answer);
  });

  test('[P8] that is a stream keeps no connection where there is nothing to answer', async () => {
    const { send, server, failures } = await openLive({
      onPost: ({ response }) => beginStream(response).flushHeaders(),
    });
    send({ jsonrpc: '2.0', method: 'notifications/x' });
    const { response } = await server.posts.next();
    await waitFor(() => response.destroyed, { what: 'the connection of the POST to be cut' });
    expect(failures).toEqual([]);
  });

  test('does not keep the response of the client from the server that asked first', async () => {
    let call: ServerResponse | undefined;
    const { send, server, messages, stream } = await openLive({
      onPost({ text, response }) {
        if (text === initialize) accept({ response });
        else if (text.includes('"id":1')) call = response;
        else if (text.includes('"id":"q"')) {
          accept({ response });
          call?.writeHead(200, { 'content-type': 'application/json' }).end(answer);
        }
      },
    });
    send(initialize);
    send(request(1));
    await waitFor(() => server.posts.items.length === 2, { what: 'the call' });
    stream.write(event('message', JSON.stringify({ jsonrpc: '2.0', id: 'q', method: 'roots/list' })));
    await messages.next();
    send({ jsonrpc: '2.0', id: 'q', result: { roots: [] } });
    expect(await messages.next()).toBe(answer);
  });

  test('[F28] that is a stream and breaks is an error of its request, unless that was answered', async () => {
    const { send, messages, unanswered } = await openLive({
      onPost({ response, text }) {
        beginStream(response).write(text.includes('"id":1') ? event('message', answer) : ': nothing\n\n', () =>
          setImmediate(() => response.destroy()),
        );
      },
    });
    send(request(1));
    send(request(2));
    expect(await messages.next()).toBe(answer);
    expect(await unanswered.next()).toEqual({ ids: [2], reason: 'server_unreachable' });
    expect(unanswered.items).toHaveLength(1);
  });
});

describe('a POST that fails', () => {
  const failing = (fail: (response: ServerResponse) => void) =>
    openLive(
      {
        onPost: ({ text, response }) =>
          text === initialize || text.includes('"ping"') ? accept({ response }) : fail(response),
      },
      { postTimeoutMs: 300 },
    );

  test.each([
    ['a status of 4xx', 'server_refused', (r: ServerResponse) => void r.writeHead(404).end('no')],
    ['a status of 5xx', 'server_refused', (r: ServerResponse) => void r.writeHead(503).end()],
    ['a redirect', 'server_refused', (r: ServerResponse) => void r.writeHead(303, { location: '/elsewhere' }).end()],
    ['a broken connection', 'server_unreachable', (r: ServerResponse) => void r.destroy()],
  ])('[R8.03] [F28] by %s is an error of its request, and the backend goes on', async (_, reason, fail) => {
    const { send, unanswered, failures, server, ends } = await failing(fail);
    send(initialize);
    send(request('a"b'));
    send(note);
    expect(await unanswered.next()).toEqual({ ids: ['a"b'], reason });
    await waitFor(() => failures.length === 2, { what: 'the notification to be dropped' });
    expect(failures).toEqual([expect.stringMatching(/ 0$/), expect.stringMatching(/ 1$/)]);
    expect(failures.join()).not.toContain('secret');
    expect(server.requests.filter((line) => line.includes('elsewhere'))).toEqual([]);
    expect(ends).toEqual([]);
  });

  test.each([
    ['404', 404, 'Session not found'],
    ['400', 400, 'No transport found for sessionId'],
    ['an error in JSON-RPC', 400, '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Unknown session"}}'],
  ])(
    '[P3] by %s, also for a ping, is the loss of the session although the stream is open: the messages can be sent again',
    async (_, status, body) => {
      const { send, end, unanswered } = await openLive({
        onPost: ({ text, response }) =>
          text === initialize
            ? accept({ response })
            : void response
                .writeHead(status, { 'content-type': body[0] === '{' ? 'application/json' : 'text/plain' })
                .end(body),
      });
      send(initialize);
      send(request(5));
      send(note);
      const { reason, undelivered } = await end();
      expect([reason, unanswered.items]).toEqual(['exited', []]);
      expect(undelivered?.map(({ message }) => JSON.parse(message.text.toString()))).toEqual([request(5), note]);
    },
  );

  test('by a server that answers a ping meanwhile is an error, and the answer to the ping is for nobody', async () => {
    const { send, messages, unanswered, ends, stream } = await openLive({
      onPost: ({ text, response }) => {
        const { id, method } = JSON.parse(text);
        if (text === initialize || method === 'ping') accept({ response });
        else void response.writeHead(404).end();
        if (method === 'ping') stream.write(event('message', JSON.stringify({ jsonrpc: '2.0', id, result: {} })));
      },
    });
    send(initialize);
    send(request(5));
    expect(await unanswered.next()).toEqual({ ids: [5], reason: 'server_refused' });
    stream.write(event('message', JSON.stringify(note)));
    expect(JSON.parse(await messages.next())).toEqual(note);
    expect(ends).toEqual([]);
  });

  test.each([
    ['no answer', () => undefined],
    [
      'half of a JSON answer',
      (r: ServerResponse) => void r.writeHead(200, { 'content-type': 'application/json' }).write('{"jsonrpc"'),
    ],
  ])('[F28] by %s is the loss of a notification; of a request it says nothing', async (_, fail) => {
    const { send, unanswered, failures, server } = await failing(fail);
    send(initialize);
    send(request(1));
    send(note);
    await waitFor(() => failures.length === 1, { what: 'the notification to be dropped' });
    expect(failures).toEqual([`${server.origin} did not accept a message within 300 ms. 1`]);
    expect(unanswered.items).toEqual([]);
  });

  test('[F28] is a failed start if it is the first', async () => {
    const { send, end } = await openLive({ onPost: ({ response }) => void response.writeHead(500).end() });
    send(initialize);
    expect(await end()).toMatchObject({ reason: 'failed', detail: expect.stringContaining('status 500') });
  });
});

describe('a server that answers the POST of a request when the call is done, as those of the Java SDK', () => {
  const answerTo = (id: number | string) => JSON.stringify({ jsonrpc: '2.0', id, result: {} });
  const cancel = (requestId: number) => ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });

  /** Requests after `initialize` are left open, everything else is accepted at once. */
  async function openSlow(options: Partial<SseOptions> = {}) {
    const calls = new Map<number, ServerResponse>();
    const opened = await openLive(
      {
        onPost({ text, response }) {
          const { id, method } = text === initialize ? {} : JSON.parse(text);
          if (method === undefined || id === undefined) accept({ response });
          else calls.set(id, response);
        },
      },
      options,
    );
    opened.send(initialize);
    return { ...opened, calls };
  }

  test('runs the calls of a session beside each other', async () => {
    const { send, calls, stream, messages } = await openSlow();
    for (let i = 1; i <= 100; i++) send(request(i));
    await waitFor(() => calls.size === 100, { what: 'all calls at the server' });
    stream.write(event('message', answerTo(100)));
    expect(await messages.next()).toBe(answerTo(100));
  });

  test('hears what its client says during a call', async () => {
    const { send, calls, server } = await openSlow();
    send(request(1));
    await waitFor(() => calls.size === 1, { what: 'the call' });
    const response = { jsonrpc: '2.0', id: 'q', result: {} };
    for (const message of [response, note]) send(message);
    await waitFor(() => server.posts.items.length === 4, { what: 'what was said', deadlineMs: 4_000 });
    expect(server.posts.items.slice(2).map(({ text }) => JSON.parse(text))).toEqual([response, note]);
  });

  test('[F28] may take longer than a message that is no request; what breaks then is an error of its request', async () => {
    const { send, calls, stream, messages, unanswered, failures } = await openSlow({ postTimeoutMs: 100 });
    send(request(1));
    send(request(2));
    await waitFor(() => calls.size === 2, { what: 'both calls' });
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(calls.get(1)?.destroyed).toBe(false);
    stream.write(event('message', answerTo(1)));
    expect(await messages.next()).toBe(answerTo(1));
    calls.get(1)?.writeHead(200).end();
    calls.get(2)?.destroy();
    expect(await unanswered.next()).toEqual({ ids: [2], reason: 'server_unreachable' });
    expect(failures).toHaveLength(1);
  });

  test('is told of a cancellation when it has had the time to read the request', async () => {
    const { send, calls, server } = await openSlow();
    send(request(1));
    const before = performance.now();
    send(cancel(1));
    await waitFor(() => server.posts.items.length === 3, { what: 'the cancellation' });
    expect(performance.now() - before).toBeGreaterThan(200);
    expect(server.posts.items.map(({ text }) => text).slice(1)).toEqual(
      [request(1), cancel(1)].map((message) => JSON.stringify(message)),
    );
    expect(calls.size).toBe(1);
  });

  test('hears the next request at once after many cancellations', async () => {
    const { send, calls, server } = await openSlow();
    for (let id = 1; id <= 20; id++) send(request(id));
    await waitFor(() => calls.size === 20, { what: 'the calls' });
    for (let id = 1; id <= 20; id++) send(cancel(id));
    send(request(21));
    await waitFor(() => calls.has(21), { what: 'the next call', deadlineMs: 2_000 });
    await waitFor(() => server.posts.items.length === 42, { what: 'the cancellations' });
  });

  test('[P8] keeps no connection for a call that it has answered on its stream', async () => {
    const { send, calls, stream, messages, unanswered, failures } = await openSlow();
    send(request(1));
    await waitFor(() => calls.size === 1, { what: 'the call' });
    stream.write(event('message', answerTo(1)));
    await messages.next();
    await waitFor(() => calls.get(1)?.destroyed === true, { what: 'the connection of the POST to be cut' });
    expect(unanswered.items).toEqual([]);
    expect(failures).toEqual([]);
  });

  test('[P2] that breaks after the call was answered says nothing of a later call with its id', async () => {
    const { send, calls, stream, messages, unanswered } = await openSlow();
    send(request(1));
    await waitFor(() => calls.size === 1, { what: 'the call' });
    const [first] = calls.values();
    stream.write(event('message', answerTo(1)));
    await messages.next();
    calls.clear();
    send(request(1));
    await waitFor(() => calls.size === 1, { what: 'the later call' });
    first?.destroy();
    stream.write(event('message', answerTo(2)));
    await messages.next();
    expect(unanswered.items).toEqual([]);
    calls.get(1)?.destroy();
    expect(await unanswered.next()).toEqual({ ids: [1], reason: 'server_unreachable' });
  });

  test('[P8] has 256 of them at most: a further one waits for room, and is refused after a time', async () => {
    const { send, calls, unanswered, failures, server } = await openSlow();
    for (let id = 1; id <= 259; id++) send(request(id));
    await waitFor(() => calls.size === 256, { what: 'as many as may be' });
    calls.get(7)?.writeHead(200).end();
    await waitFor(() => calls.has(257), { what: 'the one that waited' });
    send(note);
    send(cancel(259));
    await waitFor(() => server.posts.items.length === 260, {
      what: 'what is no request, beside them',
      deadlineMs: 3_000,
    });
    const before = performance.now();
    expect(await unanswered.next()).toEqual({ ids: [258], reason: 'server_busy' });
    expect(performance.now() - before).toBeLessThan(6_000);
    expect(failures[0]).toMatch(/^The server has 256 open requests/);
    calls.get(8)?.writeHead(200).end();
    send(request(260));
    await waitFor(() => calls.has(260), { what: 'the next one' });
    expect(calls.has(259)).toBe(false); // cancelled before it was posted
  });
});

describe('the order of what is sent', () => {
  const subscribe = (id: number) => request(id, 'resources/subscribe');

  test('a burst of requests goes to a server that accepts each, however many they are', async () => {
    const { send, server, unanswered } = await openLive();
    send(initialize);
    send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    for (let id = 1; id <= 500; id++) send(subscribe(id));
    send(request(501));
    await waitFor(() => server.posts.items.length === 503, { what: 'all of them' });
    expect(unanswered.items).toEqual([]);
  });

  test.each(['resources/unsubscribe', 'logging/setLevel'])(
    'what follows %s waits until that is accepted',
    async (method) => {
      const seen: string[] = [];
      const { send, server } = await openLive({
        onPost({ text, response }) {
          const { id, method: its } = JSON.parse(text);
          seen.push(`got ${id}`);
          setTimeout(
            () => {
              seen.push(`took ${id}`);
              accept({ response });
            },
            its === method ? 100 : 0,
          );
        },
      });
      send(initialize);
      send(request(1, method));
      send(subscribe(2));
      await waitFor(() => server.posts.items.length === 3, { what: 'all of them' });
      expect(seen.slice(0, 5)).toEqual(['got 0', 'took 0', 'got 1', 'took 1', 'got 2']);
    },
  );

  test('nothing goes before the first message is accepted, or answered on the stream', async () => {
    const { send, server, stream, messages, ends } = await openLive(
      { onPost: () => undefined },
      { postTimeoutMs: 1_000 },
    );
    send(initialize);
    send(note);
    await server.posts.next();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(server.posts.items).toHaveLength(1);
    stream.write(event('message', '{"jsonrpc":"2.0","id":0,"result":{}}'));
    await messages.next();
    await waitFor(() => server.posts.items.length === 2, { what: 'the second message', deadlineMs: 2_000 });
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(ends).toEqual([]);
  });
});

describe('the end', () => {
  let live: ServerResponse | undefined;

  test('[R8.04] of the stream is the end of the backend', async () => {
    const { stream, end, send, server } = await openLive();
    send(initialize);
    await server.posts.next();
    stream.end();
    expect(await end()).toEqual({ reason: 'exited', detail: `${server.origin} ended its stream.` });
    expect(send(note)).toBe('ended');
  });

  test('[P3] tells what the server has certainly not seen: messages behind one that it does not accept', async () => {
    const { stream, end, send, server } = await openLive({
      onPost: ({ text, response }) => text === initialize && accept({ response }),
    });
    send(initialize);
    send(note);
    send(request('waits'));
    send(note);
    await waitFor(() => server.posts.items.length === 2, { what: 'the notification' });
    stream.end();
    const { reason, undelivered = [] } = await end();
    const texts = undelivered.map(({ message }) => message.text.toString());
    expect([reason, texts]).toEqual([
      'exited',
      [request('waits'), note].map((each) => asMessage(each).text.toString()),
    ]);
  });

  test.each([
    ['ended', (stream: ServerResponse) => void stream.end()],
    ['broke', (stream: ServerResponse) => void stream.destroy()],
  ])(
    '[P3] of a stream that %s tells that a request on its way was refused, since it can be sent again',
    async (_, cut) => {
      const { end, send, unanswered } = await openLive({
        onGet(response) {
          greet(response);
          live = response;
        },
        onPost({ text, response }) {
          if (text === initialize) return accept({ response });
          cut(live as ServerResponse);
          // Later than the end of the stream, as from a server behind a proxy that cuts the stream.
          setTimeout(() => response.writeHead(404).end('Session not found'), 50);
        },
      });
      send(initialize);
      send(request(5));
      const { reason, undelivered } = await end();
      expect([reason, unanswered.items]).toEqual(['exited', []]);
      expect(undelivered?.map(({ message }) => JSON.parse(message.text.toString()))).toEqual([request(5)]);
    },
  );

  test('[R8.04] [F28] of a stream that breaks is told too', async () => {
    const { stream, end, messages } = await openLive();
    stream.write(event('message', '1'));
    await messages.next();
    stream.write('data: half');
    stream.destroy();
    expect(await end()).toMatchObject({ reason: 'exited', detail: expect.stringContaining('broke') });
    expect(messages.items).toEqual(['1']);
  });

  test('by close leaves no connection, drops what waits and is told once', async () => {
    const { server, backend, ends, send, stream } = await openLive({ onPost: () => undefined });
    send(initialize);
    send(note);
    await server.posts.next();
    const gone = new Promise((resolve) => stream.once('close', resolve));
    await Promise.all([backend.close(), backend.close()]);
    await gone;
    expect(ends).toEqual([{ reason: 'closed', detail: 'The gateway closed the connection or process of the server.' }]);
    expect(send(note)).toBe('ended');
  });

  test('by close before the server has answered', async () => {
    const { backend, ends } = await openLive({ onGet: () => undefined });
    await backend.close();
    expect(ends).toMatchObject([{ reason: 'closed' }]);
  });
});

test('pause leaves what the server writes with the server, also in answers to POSTs; resume goes on', async () => {
  const big = `"${'x'.repeat(100_000)}"`;
  const { stream, backend, messages, send } = await openLive({
    onPost: ({ response }) => void beginStream(response).end(event('message', '"of a POST"')),
  });
  stream.write(event('message', '1'));
  await messages.next();
  backend.pause();
  for (let i = 0; i < 200; i++) stream.write(event('message', big));
  send(request(1));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(messages.items).toHaveLength(1);
  expect(stream.writableLength).toBeGreaterThan(0);
  backend.resume();
  await waitFor(() => messages.items.length === 202, { what: 'all messages' });
});

test('a request that was cancelled while it waited is not among the undelivered messages', async () => {
  const { send, server, stream, end } = await openLive({
    onPost: ({ text, response }) => (text === initialize || text.includes('cancelled')) && accept({ response }),
  });
  send(initialize);
  for (let id = 1; id <= 257; id += 1) send(request(id)); // the last one waits for a slot
  await waitFor(() => server.posts.items.length === 257, { what: 'the requests' });
  send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 257 } });
  await waitFor(() => server.posts.items.length === 258, { what: 'the cancellation' });
  stream.end();
  expect((await end()).undelivered ?? []).toEqual([]);
});
