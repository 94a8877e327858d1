import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { everythingFixture, type Gateway, modernFixture, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { largeServer } from '../support/large-server.ts';
import { scrape, waitForMetric } from '../support/metrics.ts';
import { callModern, modernBody, modernHeaders, openModern } from '../support/modern-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';

const head = (start: string, headers: object, body = ''): string => {
  const length = body === '' ? {} : { 'Content-Length': Buffer.byteLength(body) };
  const lines = Object.entries({ Host: '127.0.0.1', ...headers, ...length }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `${start} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
};

/** A connection that the test writes to byte by byte, and what came on it. */
async function openSocket(gateway: Gateway): Promise<{ readonly socket: Socket; text(): string; isClosed(): boolean }> {
  const socket = connect(gateway.port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let text = '';
  let isClosed = false;
  socket
    .on('error', () => undefined)
    .on('data', (chunk) => {
      text += chunk;
    })
    .on('close', () => {
      isClosed = true;
    });
  await once(socket, 'connect');
  return { socket, text: () => text, isClosed: () => isClosed };
}

const rssMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const listen = (): string =>
  head(
    'POST /mcp',
    modernHeaders('subscriptions/listen'),
    JSON.stringify(modernBody('subscriptions/listen', { notifications: { toolsListChanged: true } })),
  );

const getStream = (id: string): string =>
  head('GET /mcp', { Accept: 'text/event-stream', 'Mcp-Session-Id': id, 'MCP-Protocol-Version': '2025-11-25' });

describe('requests that a client sends without waiting for the answers', () => {
  test('[P8] are limited: a stranger cannot fill the memory with one connection', async () => {
    const adminPort = await findFreePort();
    const gateway = await startGateway({ adminPort, command: everythingFixture });
    const before = rssMiB(gateway.pid);
    const { socket, isClosed } = await openSocket(gateway);
    socket.pause(); // the client reads no answer
    const thousand = head('GET /healthz', {}).repeat(1_000);
    for (let n = 0; n < 200 && !socket.destroyed; n += 1) if (!socket.write(thousand)) await delay(5);
    socket.resume();
    await waitFor(isClosed, { what: 'the end of the connection' });
    expect(rssMiB(gateway.pid) - before).toBeLessThan(150);
    expect((await fetch(`${gateway.baseUrl}/healthz`)).status).toBe(200);
    expect((await scrape(adminPort)).value('mcp_gangway_http_connections_dropped_total')).toBe(1);
    expect(gateway.logs().filter(({ msg }) => String(msg).includes('too many requests without'))).toHaveLength(1);
  });

  test('[P8] [P10] leave no stream behind: subscriptions of 2026-07-28', async () => {
    const adminPort = await findFreePort();
    const args = ['--era', 'modern', '--limits.session.requests', '2'];
    const gateway = await startGateway({ adminPort, command: modernFixture, args });
    await callModern(gateway.url, 'echo', { text: 'a' });
    for (let n = 0; n < 6; n += 1) {
      const { socket, text } = await openSocket(gateway);
      socket.write(listen().repeat(10));
      await waitFor(() => text() !== '', { what: 'the first answer' });
      socket.destroy();
    }
    await waitForMetric(adminPort, 'mcp_gangway_streams', {}, (count) => count === 0);
    const honest = await openModern(gateway.url, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
    expect(honest.status).toBe(200);
    honest.drop();
  });

  test('[P8] [P10] leave no stream behind: GET streams of sessions', async () => {
    const adminPort = await findFreePort();
    const gateway = await startGateway({ adminPort, command: everythingFixture });
    const sessions = await Promise.all([1, 2, 3].map(() => initialize(gateway.url)));
    const { socket, text } = await openSocket(gateway);
    socket.write(sessions.map(({ id }) => getStream(id)).join(''));
    await waitFor(() => text() !== '', { what: 'the first answer' });
    await waitForMetric(adminPort, 'mcp_gangway_streams', {}, (count) => count === 3);
    socket.destroy();
    await waitForMetric(adminPort, 'mcp_gangway_streams', {}, (count) => count === 0);
  });

  test('are served after a refusal, whose short time limit is not theirs', async () => {
    const gateway = await startGateway({ command: everythingFixture, args: ['--sse.heartbeat', '10s'] });
    const { id } = await initialize(gateway.url);
    const { socket, text, isClosed } = await openSocket(gateway);
    socket.write(head('GET /mcp', { Host: 'evil.example' }) + getStream(id));
    await waitFor(() => text().includes('text/event-stream'), { what: 'the stream' });
    await delay(6_000);
    expect(isClosed()).toBe(false);
  });

  test('end with their connection if a refused upgrade follows them', async () => {
    const gateway = await startGateway({ command: everythingFixture });
    const { socket, isClosed } = await openSocket(gateway);
    socket.write(head('GET /healthz', {}) + head('GET /nope', { Connection: 'Upgrade', Upgrade: 'websocket' }));
    await waitFor(isClosed, { what: 'the end of the connection' });
    expect(gateway.logs().filter(({ msg }) => msg === 'internal error')).toEqual([]);
  });
});

describe('behind a call that is not answered yet', () => {
  const callLarge = (session: string, id: number, args: object): string =>
    head(
      'POST /mcp',
      {
        'Content-Type': 'application/json',
        Accept: 'application/json',
        'Mcp-Session-Id': session,
        'MCP-Protocol-Version': '2025-11-25',
      },
      JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'large', arguments: args } }),
    );

  test('a second one may take longer than the client may take to read the first answer', async () => {
    const args = ['--timeouts.slowReader', '1s'];
    const gateway = await startGateway({ command: [process.execPath, '-e', largeServer], args });
    const { id } = await initialize(gateway.url);
    const { socket, text } = await openSocket(gateway);
    socket.write(callLarge(id, 7, { bytes: 20_000_000 }) + callLarge(id, 8, { ms: 3_000 }));
    await waitFor(() => text().endsWith('"id":8,"result":{"content":[{"type":"text","text":"xxxxxxxxxx"}]}}'), {
      what: 'the second answer',
    });
  });

  test.each(['websocket', 'h2c'])('an upgrade to %s ends the connection: its answer would be the first', async (to) => {
    const gateway = await startGateway({ command: [process.execPath, '-e', largeServer] });
    const { id } = await initialize(gateway.url);
    const { socket, text, isClosed } = await openSocket(gateway);
    const key = { 'Sec-WebSocket-Version': 13, 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' };
    const upgrade = head('GET /ws', { Connection: 'Upgrade', Upgrade: to, ...key, 'Sec-WebSocket-Protocol': 'mcp' });
    socket.write(callLarge(id, 7, { ms: 1_000 }) + upgrade);
    await waitFor(isClosed, { what: 'the end of the connection' });
    expect(text()).toBe('');
    expect(gateway.logs().filter(({ msg }) => msg === 'internal error')).toEqual([]);
  });
});

test('[P8] a client that leaves while its large body is read leaves nothing behind', async () => {
  const adminPort = await findFreePort();
  const args = ['--era', 'modern', '--sse.heartbeat', '1s'];
  const gateway = await startGateway({ adminPort, command: modernFixture, args });
  await callModern(gateway.url, 'echo', { text: 'a' });
  const params = { notifications: { toolsListChanged: true }, pad: 'x'.repeat(3_500_000) };
  const body = JSON.stringify(modernBody('subscriptions/listen', params));
  const request = head('POST /mcp', modernHeaders('subscriptions/listen'), body);
  // The bodies are read in turn. Each client leaves when its own was sent.
  await Promise.all(
    Array.from({ length: 20 }, async (_, n) => {
      const { socket } = await openSocket(gateway);
      await new Promise<void>((resolve) => void socket.write(request, () => resolve()));
      await delay(5 * n);
      socket.destroy();
    }),
  );
  await delay(1_000);
  await waitForMetric(adminPort, 'mcp_gangway_streams', {}, (count = 0) => count === 0);
  expect(gateway.logs().filter(({ msg }) => msg === 'internal error')).toEqual([]);
});

test('[P8] a client that reads none of the answers holds no connection, without credentials either', async () => {
  const times = ['slowReader', 'connectionIdle', 'requestIdle'].flatMap((name) => [`--timeouts.${name}`, '1s']);
  const gateway = await startGateway({ command: everythingFixture, args: times });
  const { socket, isClosed } = await openSocket(gateway);
  socket.pause();
  const request = head('GET /no-such-path', {});
  for (let n = 0; n < 100_000 && !socket.destroyed; n += 1) if (!socket.write(request)) await delay(1);
  socket.resume();
  await waitFor(isClosed, { what: 'the end of the connection' });
});
