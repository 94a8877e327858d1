import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  openSocket,
  type SocketAddress,
  type SocketOptions,
} from '../../../../src/features/remote/socket/socket-backend.ts';
import { openBackend } from '../../../core/backend/open-backend.ts';
import { createInbox, waitFor } from '../../../support/wait-for.ts';

/** A server on a socket of its own; `onSocket` is what it does with a connection. */
async function listen(kind: 'tcp' | 'unix', onSocket: (socket: Socket) => void = () => undefined) {
  const sockets = createInbox<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    sockets.push(socket);
    onSocket(socket);
  });
  const folder = mkdtempSync(join(tmpdir(), 'gangway-socket-'));
  const path = join(folder, 's');
  if (kind === 'tcp') server.listen(0, '127.0.0.1');
  else server.listen(path);
  await once(server, 'listening');
  onTestFinished(async () => {
    for (const socket of sockets.items) socket.destroy();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const address: SocketAddress =
    kind === 'tcp' ? { host: '127.0.0.1', port: (server.address() as AddressInfo).port } : { path };
  return { server, sockets, address };
}

const open = (address: SocketAddress, options: Partial<SocketOptions> = {}) =>
  openBackend((events) => openSocket({ address, closeGraceMs: 100, ...options }, events));

/** Sends everything back. */
const echo = (socket: Socket): void => void socket.pipe(socket);

describe.each(['tcp', 'unix'] as const)('a server on %s', (kind) => {
  test('gets each message as a line, in order, and its lines arrive as messages', async () => {
    const { address } = await listen(kind, echo);
    const { messages, send, backend } = open(address);
    expect(backend.pid).toBeUndefined();
    const texts = ['{"n":12345678901234567890}', '{"s":"ä€🌍\u2028"}', `"${'x'.repeat(300_000)}"`];
    for (const text of texts) expect(send(text)).toBe('sent'); // before the connection stands
    for (const text of texts) expect(await messages.next()).toBe(text);
    send('{"a":\r\n1}');
    expect(await messages.next()).toBe('{"a":  1}');
  });

  test('that ends the connection ends the backend, after its last line without a line end', async () => {
    const { address } = await listen(kind, (socket) => socket.end('{"a":1}\n{"b":2}'));
    const { messages, end, send } = open(address);
    expect(await end()).toMatchObject({ reason: 'exited', detail: expect.stringContaining('closed the connection') });
    expect(messages.items).toEqual(['{"a":1}', '{"b":2}']);
    expect(send({})).toBe('ended');
  });

  test('may write its bytes one by one', async () => {
    const { address, sockets } = await listen(kind);
    const { messages } = open(address);
    const socket = await sockets.next();
    socket.setNoDelay(true);
    for (const byte of Buffer.from('\uFEFF{"s":"🌍"}\r\n')) {
      await new Promise((resolve) => socket.write(Buffer.of(byte), resolve));
    }
    expect(await messages.next()).toBe('{"s":"🌍"}');
  });
});

describe('the limits', () => {
  test('a line over maxLineBytes ends the backend', async () => {
    const { address } = await listen('tcp', (socket) => socket.write(`{"a":1}\n"${'x'.repeat(2000)}"`));
    const { messages, end } = open(address, { maxLineBytes: 1000 });
    expect(await end()).toEqual({
      reason: 'line_too_long',
      detail: 'The server wrote a line of more than 1000 bytes.',
    });
    expect(messages.items).toEqual(['{"a":1}']);
  });

  test('what waits for a server that does not read is bounded, and nothing of a refused message is taken', async () => {
    const { address, sockets } = await listen('tcp', (socket) => void socket.pause());
    const { backend, send } = open(address, { maxQueuedBytes: 1_000_000 });
    const socket = await sockets.next();
    const text = JSON.stringify('x'.repeat(500_000));
    let taken = 0;
    while (send(text) === 'sent') {
      taken += 1;
      if (taken % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    socket.resume();
    await waitFor(() => bytes === taken * (text.length + 1), { what: 'all messages that were taken' });
    expect(send(text)).toBe('sent');
    await backend.close();
  });

  test('pause leaves what the server writes in its socket, resume goes on', async () => {
    const { address, sockets } = await listen('tcp');
    const { backend, messages } = open(address);
    const socket = await sockets.next();
    socket.write('1\n');
    await messages.next();
    backend.pause();
    const line = `"${'x'.repeat(100_000)}"\n`;
    let isFull = false;
    for (let i = 0; i < 200; i++) isFull = !socket.write(line);
    expect(isFull).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(messages.items).toHaveLength(1);
    expect(socket.writableLength).toBeGreaterThan(0);
    backend.resume();
    await waitFor(() => messages.items.length === 201, { what: 'all lines' });
  });
});

describe('a connection that cannot be made', () => {
  test('is refused: failed, with what to do', async () => {
    const { address, server } = await listen('tcp');
    server.close();
    await once(server, 'close');
    const { end } = open(address);
    expect(await end()).toMatchObject({
      reason: 'failed',
      detail: expect.stringMatching(/refused the connection.*Start/),
    });
  });

  test('has a path without a socket, or too long a one', async () => {
    const { end } = open({ path: join(tmpdir(), 'there-is-none', 's') });
    expect(await end()).toMatchObject({
      reason: 'failed',
      detail: expect.stringContaining('no socket file at this path'),
    });
    expect(await open({ path: `/tmp/${'x'.repeat(300)}` }).end()).toMatchObject({ reason: 'failed' });
  });

  test('has a host that does not resolve', async () => {
    const { end } = open({ host: 'no-such-host.invalid', port: 1 });
    expect(await end()).toMatchObject({ reason: 'failed', detail: expect.stringMatching(/cannot be (found|used)/) });
  });

  test('is not accepted in time, since the server is frozen and its queue of connections full', async () => {
    const program =
      "net.createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () { console.log(this.address().port) })";
    const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [line] = await once(child.stdout, 'data');
    const address = { host: '127.0.0.1', port: Number(line) };
    child.kill('SIGSTOP');
    const fillers = Array.from({ length: 8 }, () => connect(address).on('error', () => undefined));
    onTestFinished(() => fillers.forEach((filler) => void filler.destroy()));
    await once(fillers[0] as Socket, 'connect');
    const { end } = open(address, { connectTimeoutMs: 200 });
    const detail = `127.0.0.1:${address.port} did not accept the connection within 200 ms.`;
    expect(await end()).toEqual({ reason: 'failed', detail });
  });
});

describe('close', () => {
  test('ends our side, and the server that ends its own is left in order', async () => {
    const { address, sockets } = await listen('tcp', echo);
    const { backend, messages, send, ends } = open(address, { closeGraceMs: 10_000 });
    send('1');
    await messages.next();
    const socket = await sockets.next();
    const closed = once(socket, 'close');
    await backend.close();
    expect(ends).toEqual([{ reason: 'closed', detail: 'The gateway closed the connection or process of the server.' }]);
    expect(await closed).toEqual([false]);
    await backend.close();
    expect(send('2')).toBe('ended');
  });

  test('cuts a server that keeps its side open and goes on writing', async () => {
    const { address, sockets } = await listen('tcp');
    const { backend, ends, messages } = open(address);
    const socket = await sockets.next();
    socket.write('1\n');
    await messages.next();
    const timer = setInterval(() => socket.write('2\n'), 5);
    onTestFinished(() => clearInterval(timer));
    backend.pause();
    await backend.close();
    expect(ends).toMatchObject([{ reason: 'closed' }]);
  });

  test('before the connection stands gives it up', async () => {
    const { address } = await listen('unix');
    const { backend, ends } = open(address);
    await backend.close();
    expect(ends).toMatchObject([{ reason: 'closed' }]);
  });

  test('a broken connection is an end by itself', async () => {
    const { address, sockets } = await listen('tcp');
    const { end, messages } = open(address);
    const socket = await sockets.next();
    socket.write('1\n"half');
    await messages.next();
    socket.resetAndDestroy();
    expect(await end()).toMatchObject({ reason: 'exited' });
    expect(messages.items).toEqual(['1']);
  });
});
