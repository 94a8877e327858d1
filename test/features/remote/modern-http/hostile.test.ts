import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { answerTo, beginStream, json } from '../streamable-http/streamable-http-server.ts';
import { ask, discover, openLiveModern, openModern } from './live.ts';

const textOf = (response: ServerResponse, status: number, type: string, text: string): void =>
  void response.writeHead(status, { 'content-type': type }).end(text);
const error = (id: unknown, code = -32000) => ({ jsonrpc: '2.0', id, error: { code, message: 'no' } });

describe('[F28] a server that answers its first request with', () => {
  test.each<[string, (response: ServerResponse) => void, RegExp, boolean]>([
    ['400', (r) => void r.writeHead(400).end('no'), /status 400/, true],
    ['404', (r) => void r.writeHead(404).end(), /no messages at this path \(404\)/, true],
    ['405', (r) => void r.writeHead(405).end(), /no messages at this path \(405\)/, true],
    ['401', (r) => void r.writeHead(401).end(), /credentials with --header/, false],
    ['403', (r) => textOf(r, 403, 'application/json', JSON.stringify(error(null))), /credentials/, false],
    ['500', (r) => void r.writeHead(500).end('x'.repeat(100_000)), /status 500/, false],
    ['503 and an error', (r) => textOf(r, 503, 'application/json', JSON.stringify(error(0))), /status 503/, false],
    ['a redirect', (r) => void r.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(), /does not follow/, false],
    ['202', (r) => void r.writeHead(202).end(), /without answering/, false],
    ['HTML', (r) => textOf(r, 200, 'text/html', '<p>'), /without answering/, false],
    ['JSON that is no message', (r) => json(r, { status: 'ok' }), /without answering/, false],
    ['the answer to another request', (r) => json(r, answerTo({ id: 7 })), /without answering/, false],
    ['a stream that ends', (r) => void beginStream(r).end(': bye\n\n'), /ended before the response/, false],
    ['a broken connection', (r) => void r.destroy(), /closed the connection unexpectedly/, false],
    [
      'compressed JSON',
      (r) => void r.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end('x'),
      /without answering/,
      false,
    ],
  ])('[J-08] %s has not started', async (name, onPost, detail, isOtherTransport) => {
    const { send, end, messages, server } = await openModern(({ response }) => onPost(response));
    send(discover);
    const { status, ...ended } = await end();
    const isUnauthorized = name === '401' || name === '403';
    const isOddAnswer = name !== 'a broken connection';
    expect({ ...ended, isOddAnswer: ended.isOddAnswer === true, cause: undefined }).toEqual({
      reason: 'failed',
      detail: expect.stringMatching(detail),
      isOtherTransport,
      isOddAnswer,
      isUnauthorized,
    });
    if (/^[45]\d\d/.test(name)) expect(status).toBe(Number.parseInt(name, 10));
    expect(ended.detail).not.toContain('url-secret');
    expect([messages.items, server.requests.length]).toEqual([[], 1]);
  });

  test('a JSON-RPC error with 403, where clients authorize at the server, has refused the token', async () => {
    const { sendWith, end } = await openModern(
      ({ response }) => textOf(response, 403, 'application/json', JSON.stringify(error(0))),
      { passesChallenges: true },
    );
    sendWith(discover, { authorization: 'Bearer a' });
    // The other era is tried as well: the server can name its login there alone.
    const detail = expect.stringContaining('must log in');
    expect(await end()).toMatchObject({ detail, isUnauthorized: true, isOddAnswer: true });
  });
});

describe('later, a refusal', () => {
  test.each([
    ['its own id', (id: number) => error(id, -32602)],
    ['null for it', () => error(null)],
    ['none', () => ({ jsonrpc: '2.0', error: { code: -32000, message: 'no' } })],
  ])('an error with %s is that error', async (_, body) => {
    const { send, messages } = await openLiveModern(({ message, response }) =>
      textOf(response, 429, 'application/json', JSON.stringify(body(message.id), null, 1)),
    );
    send(ask(5));
    const { id, error: its } = JSON.parse(await messages.next());
    expect([id, its]).toEqual([5, body(5).error]);
  });
});

describe('[R6.07] a server that refuses as one of the legacy era', () => {
  const missingSession = (response: ServerResponse): void =>
    textOf(response, 400, 'application/json', JSON.stringify(error(null)));

  test('has ended, if it is one now', async () => {
    const { send, messages, end } = await openLiveModern(({ response }) => missingSession(response));
    send(ask(1));
    expect(JSON.parse(await messages.next())).toEqual(error(1));
    expect(await end()).toMatchObject({ reason: 'exited', detail: expect.stringMatching(/2026-07-28/) });
  });

  test('goes on, if it still is of the modern one, and is asked no more than once in a while', async () => {
    const { send, messages, unanswered, ends, server } = await openLiveModern(({ message, response }) => {
      if (message.method === 'server/discover')
        json(response, answerTo(message, { supportedVersions: ['2026-07-28'] }));
      else if (message.id < 10) response.writeHead(404).end();
      else json(response, answerTo(message));
    });
    for (const id of [1, 2, 3]) {
      send(ask(id));
      await unanswered.next();
    }
    send(ask(10));
    await messages.next();
    const methods = server.posts.items.map(({ message }) => message.method);
    expect(methods.filter((method) => method === 'server/discover')).toHaveLength(2);
    expect(ends).toEqual([]);
  });
});
