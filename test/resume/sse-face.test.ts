import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { waitForMetric } from '../support/metrics.ts';
import { type NetProxy, startNetProxy } from '../support/net-proxy.ts';
import { connectOld, initializeRequest, openOldStream } from '../support/old-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { connectV1, connectV2, type SdkClient } from '../support/sdk-clients.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { call, toldTexts, withCounting } from './counting.ts';
import { createRandom, seedOfRun } from './random.ts';

const slowReaderMs = 1_000;

let gateway: Gateway;
let proxy: NetProxy;
let adminPort: number;
beforeAll(async () => {
  adminPort = await findFreePort();
  gateway = await startGateway({
    ...withCounting(
      '--sse.reconnectDelay',
      '20ms',
      '--replay.maxSize',
      '800MiB',
      '--timeouts.slowReader',
      `${slowReaderMs}ms`,
    ),
    adminPort,
    isStoppedWithTest: false,
  });
  proxy = await startNetProxy(gateway.port);
});
afterAll(async () => {
  await proxy?.close();
  await gateway?.stop();
});

// They put their own headers in place of those of their EventSource, Last-Event-ID among them (typescript-sdk#2475): for them
// a lost stream is a lost session, as it always was in this transport. The application behind them does not notice it and
// sends no `initialize`, so the gateway sends one (docs/decisions/0162).
describe.each([
  ['v1', connectV1],
  ['v2', connectV2],
] as const)('the official client %s of HTTP+SSE, whose connection breaks', (_, connect) => {
  test('goes on at once in a new session', async () => {
    const client: SdkClient = await connect(proxy.urlOf(gateway.url), { over: 'sse', revision: '2024-11-05' });
    await client.ping();
    const before = proxy.requests().length;
    proxy.cutAll();
    await waitFor(() => proxy.requests().length > before, { what: 'the client to come again' });
    expect(proxy.requests().at(-1)).not.toMatch(/last-event-id/i);
    // A request that still goes to the endpoint of before is answered on the stream that is lost.
    const isServed = async (): Promise<boolean> =>
      withDeadline(client.ping(), { deadlineMs: 500 }).then(
        () => true,
        () => false,
      );
    await waitFor(isServed, { what: 'the new stream to be served', deadlineMs: 20_000 });
    await client.close();
  });
});

test('[F25] [P4] a client whose connections are cut at any byte gets every event once and in order', async () => {
  const seed = seedOfRun();
  const random = createRandom(seed);
  const base = proxy.urlOf(gateway.baseUrl).replace(/\/$/, '');
  const client = await connectOld(base);
  const to = 400;
  let isOver = false;
  const cutting = (async () => {
    while (!isOver) {
      await delay(random.integer(10, 60));
      proxy.cutAll();
    }
  })();
  const following = (async () => {
    while (!isOver) {
      await client.stream.ended;
      if (!isOver) await client.connect();
    }
  })();
  // Past the proxy: a POST that is cut would be an answer that nobody knows.
  const tell = call('t', 'test/tell', { from: 1, to, burst: 4, gapMs: 20, pad: 40 });
  expect((await client.post(tell, gateway.baseUrl)).status).toBe(202);
  await client.heard.next(({ params }) => params?.n === to, {
    what: `the last event (seed ${seed})`,
    deadlineMs: 50_000,
  });
  isOver = true;
  client.drop();
  await Promise.all([cutting, following]);
  const told = client.texts.filter((text) => text.includes('notifications/told'));
  expect(told, `seed ${seed}`).toEqual(toldTexts(to, 40));
  expect(client.events.filter(({ event }) => event === 'endpoint').length).toBeGreaterThan(10);
});

test('[F20] [P8] a client that does not read is cut, and hears all of it when it comes again', async () => {
  const client = await openOldStream(gateway.baseUrl);
  client.drop();
  const socket = connect(gateway.port, '127.0.0.1');
  const head = 'GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n';
  socket.write(`${head}Last-Event-ID: ${client.lastEventId}\r\n\r\n`);
  await once(socket, 'data');
  socket.pause();
  const cut = new Promise<void>((resolve) => void socket.on('error', () => undefined).once('close', () => resolve()));
  expect((await client.post(initializeRequest())).status).toBe(202);
  const to = 3_000;
  await client.post(call('t', 'test/tell', { from: 1, to, burst: 100, gapMs: 0, pad: 400 }));
  await waitForMetric(adminPort, 'mcp_gangway_clients_cut_total', {}, (count) => count === 1);
  socket.resume();
  await withDeadline(cut, { what: 'the end of the connection' });
  expect(socket.bytesRead).toBeLessThan(Buffer.byteLength(toldTexts(to, 400).join('')));
  await client.connect();
  await client.heard.next(({ params }) => params?.n === to, { what: 'the last notification', deadlineMs: 20_000 });
  expect(client.texts.filter((text) => text.includes('notifications/told'))).toEqual(toldTexts(to, 400));
  client.drop();
});
