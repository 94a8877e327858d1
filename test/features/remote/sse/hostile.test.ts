import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startVictim } from '../../../core/backend/local-servers.ts';
import { createInbox } from '../../../support/wait-for.ts';
import { beginStream, endpointPath, event, greet, open, openLive, startSseServer } from './sse-server.ts';

const request = (id: number) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: {} });

describe('an endpoint that is not on the origin of the stream', () => {
  test.each<[string, (victim: number) => string]>([
    ['//evil', () => '//evil.invalid/m'],
    ['another port', (port) => `http://127.0.0.1:${port}/m`],
    ['another port without a scheme', (port) => `//127.0.0.1:${port}/m`],
    ['the same host by another name', (port) => `http://localhost:${port}/m`],
    ['another scheme', (port) => `https://127.0.0.1:${port}/m`],
    ['the metadata service', () => 'http://169.254.169.254/latest/meta-data/'],
    ['backslashes', (port) => `\\\\127.0.0.1:${port}\\m`],
    ['a slash and a backslash', (port) => `/\\127.0.0.1:${port}/m`],
    ['a user name', (port) => `http://127.0.0.1:1@127.0.0.1:${port}/m`],
    ['another origin in JSON', (port) => JSON.stringify({ uri: `http://127.0.0.1:${port}/m` })],
    ['a file', () => 'file:///etc/passwd'],
  ])('[S10] [A07] [R8.01] [F28] %s: failed, nothing is sent there', async (_, endpoint) => {
    const victim = await startVictim();
    const server = await startSseServer({
      onGet: (response) => void beginStream(response).write(event('endpoint', endpoint(victim.port))),
    });
    const { send, end } = open(server.url);
    send(request(1));
    const { reason, detail } = await end();
    expect(reason).toBe('failed');
    expect(detail).toContain('The server named an endpoint');
    expect(detail).not.toMatch(/evil|169|passwd|127/);
    expect(victim.calls()).toBe(0);
    expect(server.requests).toEqual(['GET /sse']);
  });

  test.each([301, 302, 303, 307, 308])(
    '[S10] [A07] [F28] a stream that redirects with %i is not followed',
    async (status) => {
      const victim = await startVictim();
      const location = `http://127.0.0.1:${victim.port}/?secret`;
      const server = await startSseServer({ onGet: (response) => void response.writeHead(status, { location }).end() });
      const { reason, detail } = await open(server.url).end();
      expect([reason, detail]).toEqual(['failed', expect.stringContaining(`a redirect (${status})`)]);
      expect(detail).not.toContain('secret');
      expect(victim.calls()).toBe(0);
    },
  );
});

describe('a stream that is none', () => {
  test.each<[string, (response: ServerResponse) => void, RegExp]>([
    ['404', (r) => void r.writeHead(404).end(), /no HTTP\+SSE stream at this path \(404\)/],
    ['405', (r) => void r.writeHead(405).end(), /\(405\)/],
    ['401', (r) => void r.writeHead(401).end(), /credentials with --header/],
    ['500', (r) => void r.writeHead(500).end('x'.repeat(100_000)), /status 500/],
    ['503 that never ends', (r) => void r.writeHead(503).write('x'), /status 503/],
    ['204', (r) => void r.writeHead(204).end(), /status 204/],
    ['HTML', (r) => void r.writeHead(200, { 'content-type': 'text/html' }).end('<p>'), /a content type other than/],
    ['no content type', (r) => void r.writeHead(200).end('data: 1\n\n'), /a content type other than/],
    [
      'a stream that is compressed in an unknown way',
      (r) => void r.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'zstd' }).end('x'),
      /compressed its answer in a way/,
    ],
    ['a broken connection', (r) => void r.destroy(), /closed the connection unexpectedly/],
    ['no head of an answer', () => undefined, /did not answer within 200 ms/],
    [
      'a stream without an endpoint that ends',
      (r) => void beginStream(r).end(': hello\n\n'),
      /without sending an endpoint event/,
    ],
    [
      'a stream without an endpoint',
      (r) => void beginStream(r).write(': hello\n\n'),
      /no endpoint event within 200 ms/,
    ],
    [
      'an endpoint drip-fed for ever',
      (r) => {
        beginStream(r).write('event: endpoint\ndata: /');
        const timer = setInterval(() => r.write('x'), 20);
        r.once('close', () => clearInterval(timer));
      },
      /no endpoint event within 200 ms/,
    ],
    [
      'other events for ever',
      (r) => {
        beginStream(r).write('event: hello\ndata: 1\n\n');
        const timer = setInterval(() => r.write(': ping\n\n'), 20);
        r.once('close', () => clearInterval(timer));
      },
      /no endpoint event within 200 ms/,
    ],
  ])('[F28] %s: failed, with a clear sentence', async (_, onGet, detail) => {
    const server = await startSseServer({ onGet });
    const { end } = open(server.url, { answerTimeoutMs: 200, endpointTimeoutMs: 200 });
    expect(await end()).toMatchObject({ reason: 'failed', detail: expect.stringMatching(detail) });
  });
});

describe('a stream that goes wrong later', () => {
  test('[F28] the endpoint twice, the same: nothing happens', async () => {
    const { stream, messages, ends } = await openLive();
    stream.write(event('endpoint', endpointPath));
    stream.write(event('message', '1'));
    await messages.next();
    expect(ends).toEqual([]);
  });

  test.each([
    ['another one of its origin', '/messages?sessionId=other', /changed the endpoint/],
    ['one of another origin', '//evil/m', /on another origin/],
  ])('[A07] [F28] a second endpoint, %s: the end, so that the session is restored', async (_, second, detail) => {
    const { stream, end, messages } = await openLive();
    stream.write(`${event('message', '1')}${event('endpoint', second)}${event('message', '2')}`);
    expect(await end()).toMatchObject({ reason: 'exited', detail: expect.stringMatching(detail) });
    expect(messages.items).toEqual(['1']);
  });

  test('[F28] an event of 64 MiB and more: the end, and it is not held', async () => {
    const { stream, end, messages } = await openLive({}, { maxLineBytes: 16 * 1024 * 1024 });
    stream.write(event('message', '1'));
    await messages.next();
    const before = process.memoryUsage().rss;
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    stream.write('data: ');
    const gone = once(stream, 'close');
    const drains = createInbox<void>();
    stream.on('drain', () => drains.push());
    const flood = (async () => {
      for (let i = 0; i < 64 && !stream.destroyed; i++) {
        if (!stream.write(chunk)) await Promise.race([drains.next(), gone]);
      }
    })();
    const detail = 'The server wrote an event of more than 16777216 bytes.';
    expect(await end()).toMatchObject({ reason: 'line_too_long', detail });
    await flood;
    expect(messages.items).toEqual(['1']);
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
  });

  test.each([
    ['as JSON', 'application/json'],
    ['as SSE', 'text/event-stream'],
  ])('[F28] an answer over the limit in the body of a POST, %s, fails its request alone', async (_, type) => {
    const { send, unanswered, ends } = await openLive(
      {
        onPost: ({ response }) =>
          void response.writeHead(200, { 'content-type': type }).write(`data: "${'x'.repeat(5000)}`),
      },
      { maxLineBytes: 1000 },
    );
    send(request(1));
    expect(await unanswered.next()).toEqual({ ids: [1], reason: 'line_too_long' });
    expect(ends).toEqual([]);
  });

  test('[A11] [S16] a request that a lenient server could take for two has a length, no chunks, and no line break in it', async () => {
    const received = createInbox<string>();
    const lenient = createServer((socket) => {
      let text = '';
      socket.setEncoding('latin1').on('error', () => undefined);
      socket.on('data', (chunk) => {
        text += chunk;
        if (text.startsWith('GET'))
          socket.write(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${event('endpoint', '/m')}`);
        else if (text.endsWith('"end"')) received.push(text);
      });
    });
    lenient.listen(0, '127.0.0.1');
    await once(lenient, 'listening');
    onTestFinished(() => void lenient.close());
    const { send } = open(new URL(`http://127.0.0.1:${(lenient.address() as AddressInfo).port}/sse`));
    const message =
      '"ä",\r\n\r\nPOST /smuggled HTTP/1.1\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"end"';
    send(message);
    const [head = '', ...bodies] = (await received.next()).split('\r\n\r\n');
    expect(head).not.toMatch(/transfer-encoding/i);
    expect(head.match(/content-length: \d+/gi)).toEqual([`content-length: ${Buffer.byteLength(message)}`]);
    expect(bodies).toEqual([Buffer.from(message.replace(/[\r\n]/g, ' ')).toString('latin1')]);
  });

  test('[F28] silence after the POST: the request is left to its own time limit, others go on', async () => {
    const { send, stream, messages, ends } = await openLive();
    send(request(1));
    send(request(2));
    stream.write(event('message', '{"jsonrpc":"2.0","id":2,"result":{}}'));
    expect(await messages.next()).toContain('"id":2');
    expect(ends).toEqual([]);
  });

  test('[F28] a drop in the middle of a call: the end', async () => {
    const { send, server, stream, end } = await openLive({ onGet: greet });
    send(request(1));
    await server.posts.next();
    stream.destroy();
    expect(await end()).toMatchObject({ reason: 'exited' });
  });
});
