import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { maxUnansweredPings } from '../../../../src/features/websocket/websocket-peer.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { answerHandshake, listen, open } from './websocket-server.ts';

/** The head of an answer that accepts the handshake, with these headers more. */
const accept = (headers: NodeJS.Dict<string | string[]>, ...more: string[]): string => {
  const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  return [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${createHash('sha1').update(key).digest('base64')}`,
    ...more,
    '\r\n',
  ].join('\r\n');
};
const chosen = 'Sec-WebSocket-Protocol: mcp';

/** A server that answers the handshake rightly, then writes these bytes and nothing else. */
const writeAfterHandshake = (bytes: Buffer) =>
  answerHandshake({
    onUpgrade: (socket, headers) => void socket.write(accept(headers, chosen), () => socket.write(bytes)),
  });

describe('a handshake', () => {
  test.each<[string, number, Record<string, string>, RegExp]>([
    ['401', 401, {}, /refused access \(401\).*--header/],
    ['404', 404, {}, /no WebSocket at this path \(404\)/],
    ['a redirect', 302, { location: 'ws://127.0.0.1:1/' }, /redirect \(302\), which the gateway does not follow/],
    ['a page', 200, {}, /status 200 instead of a WebSocket/],
    ['an error', 503, {}, /status 503/],
  ])('[F28] answered with %s: failed, with what to do', async (_, status, headers, detail) => {
    const url = await answerHandshake({
      onRequest: (_request, response) => void response.writeHead(status, headers).end('x'),
    });
    const told = await open(url).end();
    expect(told).toMatchObject({ reason: 'failed', detail: expect.stringMatching(detail) });
    expect(told.detail).not.toMatch(/secret|mcp\?/);
  });

  test.each<[string, (headers: NodeJS.Dict<string | string[]>) => string, RegExp]>([
    ['no subprotocol', (headers) => accept(headers), /did not accept the subprotocol mcp/],
    [
      'another subprotocol',
      (headers) => accept(headers, 'Sec-WebSocket-Protocol: chat'),
      /did not accept the subprotocol/,
    ],
    [
      'an extension that was not offered',
      (h) => accept(h, chosen, 'Sec-WebSocket-Extensions: permessage-deflate'),
      /is not a WebSocket server/,
    ],
    ['a wrong key', () => accept({ 'sec-websocket-key': 'x' }, chosen), /is not a WebSocket server/],
    ['what is not HTTP', () => 'hello\r\n\r\n', /is not a WebSocket server/],
  ])('[F28] answered with %s: failed', async (_, answer, detail) => {
    const closed: Promise<unknown>[] = [];
    const url = await answerHandshake({
      onUpgrade(socket, headers) {
        closed.push(once(socket, 'close'));
        socket
          .once('end', () => socket.end())
          .resume()
          .write(answer(headers));
      },
    });
    expect(await open(url).end()).toMatchObject({ reason: 'failed', detail: expect.stringMatching(detail) });
    await Promise.all(closed);
  });

  test.each<[string, (socket: Duplex) => void]>([
    ['never answered', () => undefined],
    [
      'answered byte by byte without an end',
      (socket) => {
        const timer = setInterval(() => socket.write('x'), 10);
        socket.once('close', () => clearInterval(timer)).write('HTTP/1.1 101 Switching Protocols\r\nX: ');
      },
    ],
  ])('[F28] %s: failed in time', async (_, onUpgrade) => {
    const url = await answerHandshake({ onUpgrade });
    const detail = `${url.origin} did not accept the WebSocket connection within 200 ms (--defaults.timeouts.start).`;
    expect(await open(url, { answerTimeoutMs: 200 }).end()).toEqual({ reason: 'failed', detail });
  });

  test('[F28] of a server that is not there, or ends the connection', async () => {
    const { url } = await listen();
    const gone = new URL(url);
    gone.port = '1';
    expect(await open(gone).end()).toMatchObject({
      reason: 'failed',
      detail: expect.stringContaining('refused the connection'),
    });
    const server = createServer((socket: Socket) => void socket.end()).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    gone.port = String((server.address() as AddressInfo).port);
    expect(await open(gone).end()).toMatchObject({
      reason: 'failed',
      detail: expect.stringContaining('closed the connection unexpectedly'),
    });
  });
});

describe('a connection', () => {
  test.each<[string, Buffer, RegExp]>([
    ['a frame with a mask', Buffer.from([0x81, 0x81, 1, 2, 3, 4, 0x30]), /WS_ERR_UNEXPECTED_MASK/],
    ['a compressed frame', Buffer.from([0xc1, 0x01, 0x30]), /WS_ERR_UNEXPECTED_RSV_1/],
    ['lines in place of frames', Buffer.from('{"jsonrpc":"2.0"}\n'), /violated the WebSocket protocol/],
  ])('[F28] with %s ends', async (_, bytes, detail) => {
    const { end } = open(await writeAfterHandshake(bytes));
    expect(await end()).toMatchObject({ reason: 'exited', detail: expect.stringMatching(detail) });
  });

  test('[F15] with a frame that says it is too long ends before it is there', async () => {
    const head = Buffer.from([0x81, 127, 0, 0, 0, 1, 0, 0, 0, 0]);
    const { end } = open(await writeAfterHandshake(head));
    expect(await end()).toMatchObject({ reason: 'line_too_long' });
  });

  test('[F15] with a large frame in tiny pieces ends before putting them together would take long', async () => {
    const url = await answerHandshake({
      onUpgrade: async (socket, headers) => {
        (socket as Socket).setNoDelay(true);
        socket.write(accept(headers, chosen));
        socket.write(Buffer.from([0x81, 127, 0, 0, 0, 0, 0, 0x0f, 0xff, 0xff]));
        while (!socket.destroyed && socket.write(' ')) await new Promise(setImmediate);
      },
    });
    const { end } = open(url, { maxLineBytes: 1024 * 1024, heartbeatMs: 60_000 });
    expect(await end()).toMatchObject({ reason: 'exited', detail: expect.stringContaining('TOO_MANY_BUFFERED_PARTS') });
  });

  test('[F28] that sends a close frame but keeps the socket open is cut', async () => {
    const { end } = open(await writeAfterHandshake(Buffer.from([0x88, 0x02, 0x03, 0xe8])));
    expect(await end()).toMatchObject({ reason: 'exited', detail: expect.stringContaining('code 1000') });
  });

  test('[F28] of a server that answers no ping ends, one that does stays', async () => {
    const silent = open(await writeAfterHandshake(Buffer.alloc(0)), { heartbeatMs: 20 });
    const { url, peers } = await listen();
    const { ends } = open(url, { heartbeatMs: 20 });
    const peer = await peers.next();
    let pings = 0;
    peer.on('ping', () => {
      pings += 1;
    });
    const detail = `sent nothing and did not answer pings for ${maxUnansweredPings * 20} ms`;
    expect(await silent.end()).toMatchObject({ reason: 'exited', detail: expect.stringContaining(detail) });
    await waitFor(() => pings > 2 * maxUnansweredPings, { what: 'pings' });
    expect(ends).toEqual([]);
  });

  test('that is paused is not taken for silent', async () => {
    const { url, peers } = await listen();
    const { backend, ends, messages } = open(url, { heartbeatMs: 10 });
    const peer = await peers.next();
    backend.pause();
    let pings = 0;
    peer.on('ping', () => {
      pings += 1;
    });
    await waitFor(() => pings > 3 * maxUnansweredPings, { what: 'pings' });
    expect(ends).toEqual([]);
    backend.resume();
    peer.send('1');
    expect(await messages.next()).toBe('1');
  });
});
