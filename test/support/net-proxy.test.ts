import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type NetProxy, type Plan, startNetProxy } from './net-proxy.ts';
import { startRedis } from './redis-server.ts';
import { openResp } from './resp.ts';
import { processOf } from './socket-owner.ts';
import { createInbox, waitFor, withDeadline } from './wait-for.ts';

/** A server that sends back what it gets, behind a proxy. */
async function startEcho(plan?: (index: number) => Plan): Promise<NetProxy> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = await startNetProxy((server.address() as AddressInfo).port, plan && { plan });
  onTestFinished(async () => {
    await proxy.close();
    server.close();
  });
  return proxy;
}

interface Client {
  readonly socket: Socket;
  readonly text: () => string;
  /** Sends, and resolves when as many bytes have come back in all. */
  echo(text: string): Promise<void>;
  /** Resolves with `end`, or with the code of the error. */
  readonly closed: Promise<string>;
}

async function open(proxy: NetProxy): Promise<Client> {
  const socket = connect(proxy.port, '127.0.0.1');
  let text = '';
  let sent = 0;
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  const closed = new Promise<string>((resolve) => {
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    socket.once('close', () => resolve('end'));
  });
  await once(socket, 'connect');
  onTestFinished(() => void socket.destroy());
  const echo = async (more: string): Promise<void> => {
    sent += more.length;
    socket.write(more);
    await waitFor(() => text.length >= sent, { what: `${sent} bytes`, intervalMs: 1 });
  };
  return { socket, text: () => text, echo, closed };
}

test('cuts after so many bytes from now on, at the beginning and at run time', async () => {
  const proxy = await startEcho((index) => (index === 0 ? { toClient: { cutAfterBytes: 3 } } : {}));
  const [first, second] = [await open(proxy), await open(proxy)];
  first.socket.write('abcdef');
  expect(await first.closed).toBe('end');
  expect(first.text()).toBe('abc');
  await second.echo('abcdef');
  proxy.set({ toClient: { cutAfterBytes: 2 } });
  second.socket.write('ghij');
  expect(await second.closed).toBe('end');
  expect(proxy.connections.items[1]?.passed).toEqual({ toServer: 10, toClient: 8 });
  expect(second.text()).toBe('abcdefgh');
  expect(proxy.openCount).toBe(0);
});

test('cuts by a reset where the plan says so', async () => {
  // Without bytes before it: Node.js takes a reset that comes together with bytes for an end.
  const proxy = await startEcho(() => ({ toServer: { cutAfterBytes: 3 }, cutBy: 'reset' }));
  const client = await open(proxy);
  client.socket.write('abcdef');
  expect(await client.closed).toBe('ECONNRESET');
});

test('holds back one direction, and then lets everything pass', async () => {
  const proxy = await startEcho();
  const client = await open(proxy);
  await client.echo('a');
  proxy.set({ toClient: { isHeld: true } });
  client.socket.write('bc');
  await waitFor(() => proxy.connections.items[0]?.passed.toServer === 3);
  client.socket.end();
  await expect(withDeadline(client.closed, { deadlineMs: 50 })).rejects.toThrow('in vain');
  expect(client.text()).toBe('a');
  proxy.set({});
  expect(await client.closed).toBe('end');
  expect(client.text()).toBe('abc');
});

test('is late by its latency, without being slow', async () => {
  const proxy = await startEcho(() => ({ toServer: { latencyMs: 200 }, toClient: { latencyMs: 200 } }));
  const client = await open(proxy);
  const begun = performance.now();
  const arrived = createInbox<number>();
  client.socket.on('data', () => arrived.push(performance.now() - begun));
  for (let n = 0; n < 5; n++) {
    client.socket.write('x');
    await delay(10);
  }
  await waitFor(() => client.text().length === 5);
  expect(arrived.items[0]).toBeGreaterThan(398);
  // Five writes over 50 ms are under way together: one after the other they would take two seconds.
  expect(arrived.items.at(-1)).toBeLessThan(1_900);
  proxy.set({});
  await withDeadline(client.echo('y'), { deadlineMs: 5_000 });
});

test('is as slow as its rate, until it is told otherwise', async () => {
  const proxy = await startEcho(() => ({ toClient: { bytesPerSecond: 10_000 } }));
  const client = await open(proxy);
  const begun = performance.now();
  await client.echo('x'.repeat(1_000));
  expect(performance.now() - begun).toBeGreaterThan(95);
  client.socket.write('x'.repeat(1_000_000));
  proxy.set({});
  await waitFor(() => client.text().length === 1_001_000);
});

test('swallows one direction for ever', async () => {
  const proxy = await startEcho();
  const client = await open(proxy);
  await client.echo('a');
  proxy.blackHoleAll('toServer');
  client.socket.write('b');
  proxy.set({});
  await expect(withDeadline(client.closed, { deadlineMs: 50 })).rejects.toThrow('in vain');
  expect(client.text()).toBe('a');
  proxy.resetAll();
  expect(await client.closed).toBe('ECONNRESET');
});

test('refuses new connections and leaves the others, until it accepts again', async () => {
  const proxy = await startEcho();
  const client = await open(proxy);
  await proxy.refuse();
  await expect(open(proxy)).rejects.toThrow('ECONNREFUSED');
  await client.echo('still');
  await proxy.accept();
  await (await open(proxy)).echo('again');
  expect(proxy.connections.items).toHaveLength(2);
  expect(proxy.openCount).toBe(2);
  proxy.cutAll();
  expect(await client.closed).toBe('end');
});

test('stands between a client and Redis', async () => {
  const redis = await startRedis();
  await using proxy = await startNetProxy(redis.port);
  expect(proxy.urlOf(redis.url)).toBe(`redis://127.0.0.1:${proxy.port}`);
  const replies = createInbox<unknown>();
  const connection = await openResp(proxy.port, replies.push);
  connection.send(['SET', 'a', '1']);
  expect(await replies.next()).toBe('OK');
  proxy.set({ toClient: { isHeld: true } });
  connection.send(['SET', 'a', '2']);
  await waitFor(async () => (await redis.cli('GET', 'a')) === '2');
  expect(replies.items).toHaveLength(1);
  proxy.set({});
  expect(await replies.next()).toBe('OK');
  connection.close();
});

test('names the process of its client, and changes what the server says', async () => {
  const server = createServer((socket) => void socket.write('port 1234'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const clients: (number | undefined)[] = [];
  const proxy: NetProxy = await startNetProxy((server.address() as AddressInfo).port, {
    onOpened: ({ clientPort }) => clients.push(processOf(clientPort, proxy.port, [1, process.pid])),
    edit: (chunk) => Buffer.from(chunk.toString().replace('1234', '5678')),
  });
  const socket = connect(proxy.port, '127.0.0.1');
  const [said] = await once(socket, 'data');
  expect(String(said)).toBe('port 5678');
  expect(clients).toEqual([process.pid]);
  expect(proxy.open()).toHaveLength(1);
  socket.destroy();
  await proxy.close();
  server.close();
});

test('closes a connection that is reset while its end is passed on', async () => {
  const proxy = await startEcho(() => ({ toClient: { latencyMs: 60_000 } }));
  const client = await open(proxy);
  client.socket.end();
  await proxy.connections.items[0]?.serverClosed;
  proxy.set({});
  proxy.resetAll();
  await withDeadline(proxy.close(), { deadlineMs: 5_000, what: 'the proxy to close' });
  expect(await client.closed).toMatch(/^(?:end|ECONNRESET)$/);
});

test('closes the side of the server when the network is back, also if the client has given up meanwhile', async () => {
  const proxy = await startEcho();
  const client = await open(proxy);
  await client.echo('a');
  proxy.blackHoleAll();
  client.socket.end();
  await waitFor(() => proxy.openCount === 0, { what: 'the side of the client to close' });
  proxy.breakBlackHoles();
  const [connection] = proxy.connections.items;
  await withDeadline(connection?.serverClosed ?? Promise.reject(), {
    deadlineMs: 5_000,
    what: 'the other side to close',
  });
});
