import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type NetProxy, startNetProxy } from '../support/net-proxy.ts';
import { connectOld } from '../support/old-client.ts';
import { connectV1, connectV2, type SdkClient } from '../support/sdk-clients.ts';
import { waitFor } from '../support/wait-for.ts';
import { call, toldTexts, withCounting } from './counting.ts';
import { createRandom, seedOfRun } from './random.ts';

let gateway: Gateway;
let proxy: NetProxy;
beforeAll(async () => {
  gateway = await startGateway({
    ...withCounting('--retry-ms', '20', '--log-max-events', '100000'),
    isStoppedWithTest: false,
  });
  proxy = await startNetProxy(gateway.port);
});
afterAll(async () => {
  await proxy?.close();
  await gateway?.stop();
});

// They put their own headers in place of those of their EventSource, Last-Event-ID among them (typescript-sdk#2475): for them
// a lost stream is a lost session, as it always was in this transport.
describe.each([
  ['v1', connectV1],
  ['v2', connectV2],
] as const)('the official client %s of HTTP+SSE, whose connection breaks', (_, connect) => {
  test('is told at once that it has to begin anew', async () => {
    const client: SdkClient = await connect(proxy.urlOf(gateway.url), { over: 'sse', revision: '2024-11-05' });
    await client.ping();
    const before = proxy.requests().length;
    proxy.cutAll();
    await waitFor(() => proxy.requests().length > before, { what: 'the client to come again' });
    expect(proxy.requests().at(-1)).not.toMatch(/last-event-id/i);
    await waitFor(() =>
      client.ping().then(
        () => false,
        (error: Error) => error.message.includes('unknown_token'),
      ),
    );
    await client.close();
    const next = await connect(proxy.urlOf(gateway.url), { over: 'sse', revision: '2024-11-05' });
    await next.ping();
    await next.close();
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
