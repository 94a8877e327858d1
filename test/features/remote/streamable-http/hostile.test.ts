import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { UrlServerOptions } from '../../../../src/features/remote/http-client/server-connection.ts';
import { openStreamableHttp } from '../../../../src/features/remote/streamable-http/streamable-http-backend.ts';
import { openBackend } from '../../../core/backend/open-backend.ts';
import { waitFor } from '../../../support/wait-for.ts';
import {
  answerTo,
  beginStream,
  event,
  initialize,
  json,
  type Manners,
  note,
  openLive,
  request,
  startHttpServer,
  welcome,
} from './streamable-http-server.ts';

const textOf = (response: ServerResponse, status: number, type: string, text: string): void =>
  void response.writeHead(status, { 'content-type': type }).end(text);

describe('an answer to initialize that is none', () => {
  const begin = async (onInitialize: Manners['onInitialize'], options: Partial<UrlServerOptions> = {}) => {
    const server = await startHttpServer(onInitialize && { onInitialize });
    const opened = openBackend((events) => openStreamableHttp({ url: server.url, ...options }, events));
    opened.send(initialize);
    return { server, ...opened };
  };

  test.each<[string, (response: ServerResponse) => void, RegExp, boolean]>([
    ['400', (r) => void r.writeHead(400).end('no'), /status 400/, true],
    ['404', (r) => void r.writeHead(404).end(), /no messages at this path \(404\)/, true],
    ['405', (r) => void r.writeHead(405).end(), /no messages at this path \(405\)/, true],
    ['401', (r) => void r.writeHead(401).end(), /credentials with --header/, false],
    ['403', (r) => void r.writeHead(403).end(), /credentials with --header/, false],
    ['500', (r) => void r.writeHead(500).end('x'.repeat(100_000)), /status 500/, false],
    ['202', (r) => void r.writeHead(202).end(), /without answering/, false],
    ['HTML', (r) => textOf(r, 200, 'text/html', '<p>'), /without answering/, false],
    [
      'JSON that is no message',
      (r) => textOf(r, 200, 'application/json', '{"status":"ok"}'),
      /without answering/,
      false,
    ],
    ['the answer to another request', (r) => json(r, answerTo({ id: 7 }, welcome)), /without answering/, false],
    [
      'a stream that ends',
      (r) => void beginStream(r).end(event(note)),
      /stream of .* ended before the response/,
      false,
    ],
    ['a broken connection', (r) => void r.destroy(), /closed the connection unexpectedly/, false],
    [
      'JSON that only says that it is compressed',
      (r) =>
        void r.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end('not compressed'),
      /compression is broken/,
      false,
    ],
    [
      'two session ids',
      (r) => void r.setHeader('mcp-session-id', ['a', 'b']).writeHead(200).end(),
      /two session ids/,
      false,
    ],
    [
      'a session id with a blank',
      (r) => json(r, answerTo({ id: 0 }, welcome), { 'mcp-session-id': 'a b' }),
      /not visible ASCII/,
      false,
    ],
    [
      'a session id without end',
      (r) => json(r, answerTo({ id: 0 }, welcome), { 'mcp-session-id': 'x'.repeat(20_000) }),
      /session id of more than 14336 characters/,
      false,
    ],
    [
      'a modern error',
      (r) => {
        r.statusCode = 400;
        r.setHeader('content-type', 'application/json');
        r.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"no"}}');
      },
      /2026-07-28/,
      false,
    ],
    [
      'too much JSON',
      (r) => textOf(r, 200, 'application/json', `"${'x'.repeat(20_000)}"`),
      /more than 10000 bytes/,
      false,
    ],
    [
      'too large an event',
      (r) => void beginStream(r).write(`data: "${'x'.repeat(20_000)}`),
      /an event of more than 10000 bytes/,
      false,
    ],
  ])(
    '[F28] [R8.07] %s: failed, with a clear sentence, and said to be another transport only where it may be',
    async (_, answer, detail, isOther) => {
      const { end } = await begin(({ response }) => answer(response), { maxLineBytes: 10_000 });
      const told = await end();
      expect(told).toMatchObject({ reason: 'failed', detail: expect.stringMatching(detail) });
      expect(told.isOtherTransport ?? false).toBe(isOther);
      expect(told.detail).not.toContain('secret');
    },
  );

  test('an error of the server for the request is an answer, whatever the status', async () => {
    const { messages } = await begin(({ response }) => {
      response.statusCode = 400;
      response.setHeader('content-type', 'application/json');
      response.end('{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}');
    });
    expect(await messages.next()).toContain('-32602');
  });
});

describe('an answer to a call that is none', () => {
  test.each<[string, string, (response: ServerResponse) => void]>([
    ['202', 'server_refused', (r) => void r.writeHead(202).end()],
    ['HTML', 'server_refused', (r) => textOf(r, 200, 'text/html', '<p>')],
    ['the answer to what nobody asked', 'server_refused', (r) => json(r, answerTo({ id: 77 }))],
  ])('[F28] %s: its request is unanswered, and the backend goes on', async (_, reason, answer) => {
    const { send, unanswered, messages, ends, failures } = await openLive(
      {
        onPost: ({ message, response }) =>
          message.id === 1
            ? answer(response)
            : message.id === 2
              ? json(response, answerTo(message))
              : void response.writeHead(202).end(),
      },
      { maxLineBytes: 10_000 },
    );
    send(request(1));
    expect(await unanswered.next()).toEqual({ ids: [1], reason });
    send(request(2));
    await waitFor(() => messages.items.some((text) => text.includes('"id":2')), { what: 'the next answer' });
    expect([ends, failures.length, failures.join().includes('secret')]).toEqual([[], 1, false]);
  });

  test('[F28] a notification that is never accepted is dropped and counted; others wait no longer than a while', async () => {
    const { send, messages, failures, ends } = await openLive(
      {
        onPost: ({ message, response }) =>
          message.method === note.method
            ? undefined
            : message.id === undefined
              ? void response.writeHead(202).end()
              : json(response, answerTo(message)),
      },
      { postTimeoutMs: 200 },
    );
    send(note);
    send(request(1));
    expect(await messages.next()).toContain('"id":1');
    expect([failures, ends]).toEqual([[expect.stringMatching(/did not accept a message within 200 ms. 1$/)], []]);
  });

  test.each<[string, (response: ServerResponse) => void, string[]]>([
    ['a stream that says nothing', (r) => beginStream(r).flushHeaders(), []],
    ['a stream', (r) => void beginStream(r).write(event(note)), []],
    ['202 and a text', (r) => void r.writeHead(202).write('Accepted'), []],
    [
      '503 and a text',
      (r) => void r.writeHead(503).write('upstream-secret'),
      [expect.stringMatching(/503. 1$/) as unknown as string],
    ],
    [
      'JSON',
      (r) => void r.writeHead(200, { 'content-type': 'application/json' }).write('{"a":'),
      [expect.stringMatching(/did not accept a message within 3000 ms. 1$/) as unknown as string],
    ],
  ])('[F28] [P8] a notification that is answered by %s without end keeps no connection', async (_, answer, failed) => {
    const { send, server, failures, ends } = await openLive(
      {
        onPost: ({ message, response }) =>
          message.method === note.method ? answer(response) : void response.writeHead(202).end(),
      },
      { postTimeoutMs: 3_000 },
    );
    send(note);
    const { response } = await server.posts.next(({ message }) => message.method === note.method);
    await waitFor(() => response.destroyed, { what: 'the connection of the POST to be cut' });
    await waitFor(() => failures.length === failed.length, { what: 'what is told of it' });
    expect([failures, ends]).toEqual([failed, []]);
  });
});

describe('a GET stream that goes wrong', () => {
  test('[F28] with too large an event: the end, since it would come again', async () => {
    const { end } = await openLive(
      { onGet: ({ response }) => void beginStream(response).write(`id: 1\ndata: "${'x'.repeat(20_000)}`) },
      { maxLineBytes: 10_000 },
    );
    expect(await end()).toMatchObject({ reason: 'line_too_long', detail: expect.stringContaining('10000 bytes') });
  });

  test('[F28] that ends at once each time is not asked for in a loop', async () => {
    const { server } = await openLive({ onGet: ({ response }) => void beginStream(response).end('retry: 0\n\n') });
    await server.gets.next();
    const startedAt = performance.now();
    await server.gets.next();
    expect(performance.now() - startedAt).toBeGreaterThan(900);
    await server.gets.next();
    expect(performance.now() - startedAt).toBeGreaterThan(2_800);
  });
});
