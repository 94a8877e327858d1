import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { post } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { type NetProxy, startNetProxy } from '../support/net-proxy.ts';
import { connectV1, connectV2, type SdkClient } from '../support/sdk-clients.ts';
import { waitFor } from '../support/wait-for.ts';
import { call, withCounting } from './counting.ts';

const retryMs = 20;
const countTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

/** The `Last-Event-ID`s that were sent by way of the proxy. */
const resumedFrom = (proxy: NetProxy): string[] =>
  proxy.requests().flatMap((head) => /^last-event-id: (.+)$/im.exec(head)?.[1] ?? []);
/** How many GETs were sent. */
const gets = (proxy: NetProxy): number => proxy.requests().filter((head) => head.startsWith('GET ')).length;

/** The clients; how often each asks for more of a stream that ended with an error response, the last one of a call. */
const clients = [
  // It takes such a stream for an unfinished one (typescript-sdk#2638).
  ['v1', connectV1, 1],
  ['v2', connectV2, 0],
] as const;

describe.each(clients)('the official client %s, whose connections break', (_, connect, asksAgain) => {
  let gateway: LocalGateway;
  let proxy: NetProxy;
  let client: SdkClient;
  beforeAll(async () => {
    gateway = await startLocalGateway(withCounting('--sse.reconnectDelay', `${retryMs}ms`, '--sse.streamAfter', '5ms'));
    proxy = await startNetProxy(gateway.port);
    client = await connect(proxy.urlOf(gateway.url));
    await waitFor(() => gets(proxy) > 0, { what: 'the GET stream' });
  });
  afterAll(async () => {
    await client?.close();
    await proxy?.close();
    await gateway?.stop();
  });

  const counted = (args: object, onStep?: (step: number) => void) => {
    const steps: number[] = [];
    const options = {
      onProgress: ({ progress }: { progress: number }) => {
        steps.push(progress);
        onStep?.(progress);
      },
    };
    const all = { count: 40, burst: 1, gapMs: 10, pad: 3, ...args };
    return { steps, text: client.callTool('test/count', all, options) };
  };

  test('[R9.06] [R9.15] [R7.15] [P4] ends a long call with all of its progress, in order, cut again and again', async () => {
    const cutAt = new Set([1, 2, 7, 8, 15, 30, 39]);
    const { steps, text } = counted({ gapMs: 30 }, (step) => {
      if (cutAt.has(step)) proxy.cutAll();
    });
    expect(await text).toBe('{"counted":40}');
    expect(steps).toEqual(countTo(40));
    const posts = resumedFrom(proxy).filter((id) => !id.startsWith('0.'));
    expect(posts.length).toBeGreaterThanOrEqual(4);
  });

  test('[R9.06] [R9.15] [P4] does so where the resumed connections too are cut, a little after their heads', async () => {
    const cutting = setInterval(() => {
      for (const connection of proxy.connections.items) {
        const { requests, passed } = connection;
        const isResumed = requests.length === 1 && requests[0]?.startsWith('GET ') === true;
        // A client gives up after two attempts that bring no head.
        if (isResumed && passed.toClient > 300) connection.cut();
      }
    }, 15);
    const before = resumedFrom(proxy).length;
    const { steps, text } = counted({ count: 60 }, (step) => {
      if (step === 1) proxy.cutAll();
    });
    await text.finally(() => clearInterval(cutting));
    expect(steps).toEqual(countTo(60));
    // The first resumed connection, and more after each cut: a slow machine has few.
    expect(resumedFrom(proxy).length - before).toBeGreaterThan(2);
  });

  test('[F22] [P4] gets the answer of a call that ended while it was away', async () => {
    const before = resumedFrom(proxy).length;
    // On a busy machine, the client can have received the whole answer when it is told of the first step.
    for (let tries = 0; tries < 20 && resumedFrom(proxy).length === before; tries += 1) {
      const { steps, text } = counted({ count: 5, burst: 1, gapMs: 5 }, (step) => {
        if (step === 1) proxy.cutAll();
      });
      expect(await text).toBe('{"counted":5}');
      expect(steps).toEqual(countTo(5));
      await delay(10 * retryMs); // the client must see that its other connections are cut, too
    }
    expect(resumedFrom(proxy).length).toBeGreaterThan(before);
  });

  test('[R9.06] [R7.18] [P4] hears all on its GET stream, in order and once', async () => {
    let to = 0;
    for (const count of [1, 20, 50]) {
      await client.callTool('test/tell', { from: to + 1, to: to + count, burst: 5, gapMs: 5, pad: 2 });
      const before = gets(proxy);
      proxy.cutAll();
      to += count;
      await waitFor(() => gets(proxy) > before, { what: 'the client to come again' });
      await client.notifications.next(({ params }) => params?.['n'] === to, { what: `notification ${to}` });
    }
    const told = client.notifications.items.filter(({ method }) => method === 'notifications/told');
    expect(told.map(({ params }) => params?.['n'])).toEqual(countTo(to));
  });

  test('[R9.17] ends its loop when it asks for what was delivered: 204', async () => {
    const before = resumedFrom(proxy).filter((id) => !id.startsWith('0.')).length;
    const resumes = () => resumedFrom(proxy).filter((id) => !id.startsWith('0.')).length - before;
    await expect(counted({ count: 2, fails: true }).text).rejects.toThrow('failed as asked');
    await delay(20 * retryMs); // nothing tells that a client will not ask any more
    expect(resumes()).toBe(asksAgain);
    expect(await counted({ count: 2 }).text).toBe('{"counted":2}');
    await delay(20 * retryMs);
    expect(resumes()).toBe(asksAgain);
  });
});

describe.each(clients)('the official client %s, whose history is lost', (_, connect, asksAgain) => {
  test('[R9.16] [R9.17] [P3] gets an error for its call and ends its loop', async () => {
    const gateway = await startLocalGateway(
      withCounting('--sse.reconnectDelay', '400ms', '--sse.streamAfter', '5ms', '--replay.maxSize', '80KiB'),
    );
    await using proxy = await startNetProxy(gateway.port);
    await using client = await connect(proxy.urlOf(gateway.url));
    const options = {
      onProgress: ({ progress }: { progress: number }) => {
        if (progress === 1) proxy.cutAll();
      },
    };
    const called = client.callTool('test/count', { count: 400, burst: 20, gapMs: 50, pad: 1 }, options);
    await expect(called).rejects.toThrow('no longer stored');
    const posts = () => resumedFrom(proxy).filter((id) => !id.startsWith('0.')).length;
    const told = posts();
    await delay(2_500);
    expect(posts() - told).toBe(asksAgain);
  });

  test('[R9.16] [P4] skips the gap on its GET stream and hears the rest', async () => {
    const gateway = await startLocalGateway(withCounting('--sse.reconnectDelay', '400ms', '--replay.maxSize', '80KiB'));
    await using proxy = await startNetProxy(gateway.port);
    await using client = await connect(proxy.urlOf(gateway.url));
    await waitFor(() => gets(proxy) > 0);
    await client.callTool('test/tell', { from: 1, to: 2, burst: 2, gapMs: 0, pad: 0 });
    await client.notifications.next(({ params }) => params?.['n'] === 2);
    const connections = proxy.connections.items.length;
    proxy.cutAll();
    // It is said while the client is away, by way of another connection.
    const headers = { 'Mcp-Session-Id': client.sessionId };
    await post(gateway.url, call('tell', 'test/tell', { from: 3, to: 40, burst: 50, gapMs: 0, pad: 0 }), headers);
    await client.notifications.next(({ params }) => params?.['n'] === 40);
    expect(client.notifications.items.map(({ params }) => params?.['n'])).toEqual([1, 2, ...countTo(40).slice(30)]);
    expect(proxy.connections.items.length).toBeGreaterThan(connections);
  });
});
