import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { post } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { waitForMetric } from '../support/metrics.ts';
import { type NetProxy, startNetProxy } from '../support/net-proxy.ts';
import { initializeRequest } from '../support/old-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { connectV1, connectV2, type SdkClient } from '../support/sdk-clients.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { call, toldTexts, withCounting } from './counting.ts';

const slowReaderMs = 1_000;

let gateway: LocalGateway;
let proxy: NetProxy;
let adminPort: number;
beforeAll(async () => {
  adminPort = await findFreePort();
  gateway = await startLocalGateway({
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
// sends no `initialize`, so the gateway sends one (docs/decisions/0195).
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

test('[F20] [P8] a client that does not read is cut, and its session ends', async () => {
  const socket = connect(gateway.port, '127.0.0.1');
  socket.write(`GET /sse HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAccept: text/event-stream\r\n\r\n`);
  let head = '';
  while (!head.includes('data: ')) head += String((await once(socket, 'data'))[0]);
  const endpoint = /data: (\S+)/.exec(head)?.[1] ?? '';
  socket.pause();
  const cut = new Promise<void>((resolve) => void socket.on('error', () => undefined).once('close', () => resolve()));
  const send = async (body: object) => (await post(gateway.baseUrl + endpoint, body)).status;
  expect(await send(initializeRequest())).toBe(202);
  const to = 3_000;
  expect(await send(call('t', 'test/tell', { from: 1, to, burst: 100, gapMs: 0, pad: 400 }))).toBe(202);
  await waitForMetric(adminPort, 'mcp_gangway_clients_cut_total', {}, (count) => count === 1);
  socket.resume();
  await withDeadline(cut, { what: 'the end of the connection' });
  expect(socket.bytesRead).toBeLessThan(Buffer.byteLength(toldTexts(to, 400).join('')));
  expect(await send(call('late', 'test/hold'))).toBe(404);
});
