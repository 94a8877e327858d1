import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { CookieJar } from '../../../../src/core/backend/cookie-jar.ts';
import { openWebSocket } from '../../../../src/features/websocket/backend/websocket-backend.ts';
import { openBackend } from '../../../core/backend/open-backend.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { listen, open } from './websocket-server.ts';

/** Sends everything back. */
const echo = (peer: WebSocket): void => void peer.on('message', (data, binary) => peer.send(data, { binary }));

describe('a server on WebSocket', () => {
  test('[P1] gets each message as a text frame, in order, and its frames arrive as messages', async () => {
    const { url, handshakes } = await listen(echo);
    const { messages, send, backend } = open(url, { headers: { Authorization: 'Bearer x' } });
    expect(backend.pid).toBeUndefined();
    const texts = ['{"n":12345678901234567890}', '{"s":"ä€🌍\u2028"}', `"${'x'.repeat(300_000)}"`];
    for (const text of texts) expect(send(text)).toBe('sent'); // before the connection stands
    for (const text of texts) expect(await messages.next()).toBe(text);
    expect(send('{"a":\r\n1}')).toBe('sent');
    expect(await messages.next()).toBe('{"a":  1}');
    expect(handshakes[0]).toMatchObject({ authorization: 'Bearer x', 'sec-websocket-protocol': 'mcp' });
    expect(handshakes[0]).not.toHaveProperty('sec-websocket-extensions');
  });

  test('may take longer for its answer to the handshake than for the connection: a host may have to wake up', async () => {
    const { url } = await listen(echo, {
      verifyClient: (_, accept) => void setTimeout(() => accept(true), 300),
    });
    const { messages, send } = open(url, { connectTimeoutMs: 100 });
    send('1');
    expect(await messages.next()).toBe('1');
  });

  test('gets the headers of the client with its handshake, those of the time when it is opened', async () => {
    const { url, handshakes } = await listen(echo);
    const headers = () => ({ 'x-client': 'c' });
    const { messages, send } = openBackend((events) =>
      openWebSocket({ url, headers: { 'X-Own': 'o' }, closeGraceMs: 100 }, events, { headers }),
    );
    send('1');
    await messages.next();
    expect(handshakes[0]).toMatchObject({ 'x-own': 'o', 'x-client': 'c' });
  });

  test('gets its cookies back with the next handshake of the session, also those of a refusal, and no other connection has them', async () => {
    let isBusy = true;
    const { url, handshakes } = await listen(echo, {
      verifyClient: (_, accept) => {
        if (isBusy) accept(false, 503, 'busy', { 'Set-Cookie': 'node=one; Path=/' });
        else accept(true);
      },
    });
    const cookies = new CookieJar();
    const openAgain = (jar?: CookieJar) =>
      openBackend((events) =>
        openWebSocket({ url, closeGraceMs: 100 }, events, { cookies: jar, headers: () => ({ Cookie: 'own=a' }) }),
      );
    expect((await openAgain(cookies).end()).reason).toBe('failed');
    isBusy = false;
    const kept = new CookieJar();
    kept.restore(cookies.state);
    for (const jar of [kept, undefined]) {
      const { send, messages } = openAgain(jar);
      send('1');
      await messages.next();
    }
    expect(handshakes.map(({ cookie }) => cookie)).toEqual(['own=a; node=one', 'own=a']);
  });

  test('[P1] [F16] may break lines in a message, send it in fragments, as binary, or as nothing at all', async () => {
    const { url } = await listen((peer) => {
      peer.send('{"a":\r\n1}');
      peer.send('');
      const text = Buffer.from('{"s":"🌍"}');
      for (const [i, byte] of text.entries()) peer.send(Buffer.of(byte), { binary: false, fin: i === text.length - 1 });
      peer.send(Buffer.from('{"b":1}'), { binary: true });
    });
    const { messages } = open(url);
    for (const text of ['{"a":  1}', '{"s":"🌍"}', '{"b":1}']) expect(await messages.next()).toBe(text);
  });

  test('brings what one read brought together', async () => {
    const { url, peers } = await listen();
    const portions: number[] = [];
    const { messages, send } = open(url, {}, (found) => portions.push(found.length));
    send('1');
    const peer = await peers.next();
    await once(peer, 'message');
    const texts = Array.from({ length: 100 }, (_, i) => `{"jsonrpc":"2.0","method":"m${i}"}`);
    for (const text of texts) peer.send(text);
    await waitFor(() => messages.items.length === 100, { what: 'all messages' });
    expect(portions.length).toBeLessThan(50);
    expect(messages.items).toEqual(texts);
  });

  test.each([
    [1012, 'closed the connection with code 1012'],
    [undefined, 'closed the connection without a code'],
  ])('that closes with code %s ends the backend, after its last message', async (code, detail) => {
    const { url } = await listen((peer) => {
      peer.send('{"a":1}');
      peer.close(code, code === undefined ? undefined : 'reason-secret');
    });
    const { messages, end, send } = open(url);
    const told = await end();
    expect(told).toMatchObject({ reason: 'exited', detail: expect.stringContaining(detail) });
    expect(told.detail).not.toContain('secret');
    expect(messages.items).toEqual(['{"a":1}']);
    expect(send('{}')).toBe('ended');
  });

  test('whose connection breaks ends the backend', async () => {
    const { url, peers } = await listen();
    const { end } = open(url);
    (await peers.next()).terminate();
    expect(await end()).toMatchObject({
      reason: 'exited',
      detail: expect.stringMatching(/^The connection to .* broke/),
    });
  });
});

describe('the limits', () => {
  test('a message over maxLineBytes ends the backend, and the server is told why', async () => {
    const { url, peers } = await listen((peer) => {
      peer.send('{"a":1}');
      peer.send(JSON.stringify('x'.repeat(2000)));
    });
    const { messages, end } = open(url, { maxLineBytes: 1000 });
    const [code] = await once(await peers.next(), 'close');
    expect(code).toBe(1009);
    expect(await end()).toMatchObject({
      reason: 'line_too_long',
      detail: 'The server sent a message of more than 1000 bytes.',
    });
    expect(messages.items).toEqual(['{"a":1}']);
  });

  test('[P8] what waits for a server that does not read is bounded, and nothing of a refused message is taken', async () => {
    const { url, peers } = await listen();
    const { backend, send } = open(url, { maxQueuedBytes: 1_000_000 });
    const text = JSON.stringify('x'.repeat(500_000));
    expect([send(text), send(text)]).toEqual(['sent', 'full']); // before the connection stands
    const peer = await peers.next();
    let bytes = 0;
    peer.on('message', (data: Buffer) => {
      bytes += data.length;
    });
    await once(peer, 'message');
    peer.pause();
    let taken = 1;
    while (send(text) === 'sent') {
      taken += 1;
      if (taken % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    peer.resume();
    await waitFor(() => bytes === taken * text.length, { what: 'all messages that were taken' });
    expect(send(text)).toBe('sent');
    await backend.close();
  });

  test('[P8] pause leaves what the server sends in its socket, resume goes on', async () => {
    const { url, peers } = await listen();
    const { backend, messages } = open(url);
    const peer = await peers.next();
    peer.send('1');
    await messages.next();
    backend.pause();
    const text = JSON.stringify('x'.repeat(100_000));
    for (let i = 0; i < 200; i++) peer.send(text);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(messages.items).toHaveLength(1);
    expect(peer.bufferedAmount).toBeGreaterThan(0);
    backend.resume();
    await waitFor(() => messages.items.length === 201, { what: 'all messages' });
  });

  test('pause before the connection stands holds from the first message on', async () => {
    const { url, peers } = await listen((peer) => peer.send('1'));
    const { backend, messages } = open(url);
    backend.pause();
    await peers.next();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(messages.items).toEqual([]);
    backend.resume();
    expect(await messages.next()).toBe('1');
  });
});

describe('close', () => {
  test('closes the WebSocket in order, once', async () => {
    const { url, peers } = await listen(echo);
    const { backend, messages, send, ends } = open(url, { closeGraceMs: 10_000 });
    send('1');
    await messages.next();
    const closed = once(await peers.next(), 'close');
    await backend.close();
    expect(ends).toEqual([{ reason: 'closed', detail: 'The gateway closed the connection or process of the server.' }]);
    expect((await closed)[0]).toBe(1000);
    await backend.close();
    expect(send('2')).toBe('ended');
  });

  test('cuts a server that does not answer it and goes on sending', async () => {
    const { url, peers } = await listen();
    const { backend, ends, messages } = open(url);
    const peer = await peers.next();
    peer.send('1');
    await messages.next();
    peer.pause();
    const timer = setInterval(() => peer.send('2'), 5);
    backend.pause();
    await backend.close();
    clearInterval(timer);
    expect(ends).toMatchObject([{ reason: 'closed' }]);
    expect(messages.items).toEqual(['1']);
  });

  test('before the connection stands gives it up', async () => {
    const { url } = await listen();
    const { backend, ends } = open(url);
    await backend.close();
    expect(ends).toMatchObject([{ reason: 'closed' }]);
  });
});
