import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type CountingSession,
  call,
  hold,
  openCounting,
  textsOf,
  toldTexts,
  withCounting,
} from '../resume/counting.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { isAtLeast } from '../support/log-levels.ts';
import type { SseEvent } from '../support/sse-reader.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { stopSound, urlOf } from './fast.ts';

/** So long that a test which waits for the end of one fails. */
const longLease = ['--cluster.lease', '1m'] as const;
const drainMs = 5_000;
const retryMs = 1_234;
/** From the end of an instance to an answer of the next one: a start of a server, on a machine that has other things to do. */
const soonMs = 10_000;

let cluster: Cluster;
beforeAll(async () => {
  const { command = [] } = withCounting();
  const times = [
    '--timeouts.drain',
    `${drainMs}ms`,
    '--sse.streamAfter',
    '5ms',
    '--sse.reconnectDelay',
    `${retryMs}ms`,
    '--sse.heartbeat',
    '300ms',
    // Longer than Redis stands still, so that no request of which Redis may know is given up for that.
  ];
  const graces = ['--timeouts.grace', '1s'];
  cluster = await startCluster({ command, args: [...longLease, ...times, ...graces] });
});
afterAll(() => stopSound(cluster));
afterEach(() => cluster.restart(0));

/** A session of instance 0. */
async function openThere(version = '2025-11-25'): Promise<readonly CountingSession[]> {
  const session = await openCounting(urlOf(cluster, 0), { version });
  return [0, 1, 2].map((instance) => session.at(urlOf(cluster, instance)));
}

const isTold = (n: number) => {
  const [text] = toldTexts(n, 0, n);
  return ({ data }: SseEvent): boolean => data === text;
};

/** Ends instance 0. */
async function drain(during: () => Promise<void>): Promise<void> {
  const gateway = cluster.instances[0];
  const before = performance.now();
  const ended = cluster.kill(0, 'SIGTERM');
  await during();
  expect(await withDeadline(ended, { deadlineMs: soonMs, what: 'the end of the instance' })).toEqual({
    code: 0,
    signal: null,
  });
  expect(performance.now() - before).toBeLessThan(drainMs + 1_000);
  await cluster.allChildrenEnded();
  expect(gateway?.logs().filter((line) => isAtLeast(line, 'error'))).toEqual([]);
}

describe('[P9] SIGTERM', () => {
  test('on an owner: calls end as they should, its session goes on elsewhere at once, and a listener notices nothing', async () => {
    const [own, one, two] = (await openThere()) as [CountingSession, CountingSession, CountingSession];
    const listening = two.listen();
    await one.tell(1, 3);
    await listening.events.next(isTold(3));
    const busy = await hold(one, 'busy');
    const busyHere = await hold(own, 'busy-here');

    await drain(async () => {
      // What is in flight goes on, and the session is served by way of any instance.
      await two.emit('busy', 2);
      await two.finish('busy');
      const answered = await busy.ended;
      expect(answered.isWhole).toBe(true);
      expect(textsOf(answered.events).at(-1)).toBe('{"jsonrpc":"2.0","id":"busy","result":{"counted":2}}');
      await one.finish('busy-here');
      expect(textsOf((await busyHere.ended).events)).toEqual([
        '{"jsonrpc":"2.0","id":"busy-here","result":{"counted":0}}',
      ]);
    });
    const endedAt = performance.now();
    await one.tell(4, 5);
    expect(performance.now() - endedAt).toBeLessThan(soonMs);
    await listening.events.next(isTold(5));
    expect(listening.listened.isWhole).toBe(false);
    const told = textsOf(listening.events.items).filter((text) => text.includes('test') || text.includes('told'));
    expect(told).toEqual(toldTexts(5));
    listening.drop();
  });

  test('on an owner: requests that still come to it are served by another instance, and so are new sessions', async () => {
    const [busyOwn, busyOne] = (await openThere()) as [CountingSession, CountingSession];
    const [own, one] = (await openThere()) as [CountingSession, CountingSession];
    await one.tell(1, 1);
    const busy = await hold(busyOne, 'busy');
    const linesOf = (text: string) =>
      cluster.instances.flatMap((gateway) => gateway.logs()).filter(({ msg }) => String(msg).startsWith(text)).length;
    const counts = () => [linesOf('session continues; its last instance has left it'), linesOf('session taken over')];
    const [continued = 0, taken = 0] = counts();
    await drain(async () => {
      const isDraining = async () => (await fetch(new URL('/readyz', urlOf(cluster, 0)))).status === 503;
      await waitFor(isDraining, { what: 'the beginning of the drain' });
      for (const session of [own, one, own]) expect((await session.request('test/lines')).status).toBe(200);
      const opened = await openCounting(urlOf(cluster, 0));
      expect((await opened.request('test/lines')).status).toBe(200);
      await busyOwn.finish('busy');
      expect((await busy.ended).isWhole).toBe(true);
    });
    // The instance left its session in order, so no instance counts as lost.
    expect(counts()).toEqual([continued + 1, taken]);
  });

  test('on an owner: a call that comes late, and that another instance serves, goes on there', async () => {
    const waiting = await openCounting(urlOf(cluster, 1), { version: '2025-03-26' });
    const kept = waiting.at(urlOf(cluster, 0)).listen({ body: call('wait', 'test/hold') }); // keeps the instance
    await kept.opened;
    const [own, one] = (await openThere()) as [CountingSession, CountingSession];
    let after = '';
    await drain(async () => {
      await pause(1_500);
      const { events, isWhole } = await (await hold(own, 'late')).ended;
      expect(isWhole).toBe(true);
      expect(textsOf(events)).toEqual([]);
      after = events.findLast(({ id }) => id !== undefined)?.id ?? '';
    });
    const resumed = one.listen({ after });
    await one.finish('late');
    expect(textsOf((await resumed.ended).events)).toEqual(['{"jsonrpc":"2.0","id":"late","result":{"counted":0}}']);
    await waiting.finish('wait');
  });

  test('on an owner: a call that does not end in time gets an error that is in the log, and the session goes on', async () => {
    const [, one, two] = (await openThere()) as [CountingSession, CountingSession, CountingSession];
    const held = await hold(one, 'held');
    const away = await hold(two, 'away');
    away.drop();
    await drain(async () => undefined);
    const told = { error: { data: { reason: 'outcome_unknown' } } };
    expect(JSON.parse(textsOf((await held.ended).events).at(-1) ?? '')).toMatchObject({ id: 'held', ...told });
    // Nobody has the session now; the answer is had from the log.
    const resumed = await one.listen({ after: away.events.items[0]?.id }).ended;
    expect(JSON.parse(textsOf(resumed.events).at(-1) ?? '')).toMatchObject({ id: 'away', ...told });
    expect((await two.request('test/lines')).status).toBe(200);
  });

  test('[R9.18b] on an ingress: its streams end with a retry, and the next ones have the usual one again', async () => {
    const session = await openCounting(urlOf(cluster, 1));
    const there = session.at(urlOf(cluster, 0));
    const listening = there.listen();
    await session.tell(1, 2);
    await listening.events.next(isTold(2), { what: 'two' });
    const held = await hold(there, 'held');
    const streams = [listening, held];
    await drain(async () => {
      for (const stream of streams) {
        const { events, isWhole } = await stream.ended;
        expect(isWhole).toBe(true);
        const last = events.at(-1);
        expect([last?.id, last?.data]).toEqual([undefined, undefined]);
        expect(last?.retry).toBeLessThanOrEqual(3_000);
      }
    });
    // The log has something new of the one, and nothing of the other.
    await session.emit('held', 1);
    const resumed = streams.map(({ events }) => {
      const after = events.items.findLast(({ id }) => id !== undefined)?.id ?? '';
      return { after, stream: session.at(urlOf(cluster, 2)).listen({ after }) };
    });
    for (const { after, stream } of resumed) {
      expect(await stream.events.next(() => true, { what: 'a priming event' })).toEqual({
        id: after,
        data: '',
        retry: retryMs,
      });
    }
    await session.finish('held'); // else what is told belongs to the one call in flight
    await session.tell(3, 3);
    await resumed[0]?.stream.events.next(isTold(3), { what: 'three' });
    for (const { stream } of resumed) stream.drop();
  });

  test('on an ingress: who has no event id yet is kept, and gets the answer', async () => {
    const session = await openCounting(urlOf(cluster, 1), { version: '2025-03-26' });
    const waiting = session.at(urlOf(cluster, 0)).listen({ body: call('wait', 'test/hold') });
    await waiting.opened;
    await drain(async () => {
      await session.finish('wait');
      const { events, isWhole } = await waiting.ended;
      expect([isWhole, textsOf(events)]).toEqual([true, ['{"jsonrpc":"2.0","id":"wait","result":{"counted":0}}']]);
    });
  });
});

test('[R9.14] [P7] a GET is answered while the owner or Redis stands still: 200, comments, and it waits', async () => {
  const [, one, two] = (await openThere()) as [CountingSession, CountingSession, CountingSession];
  const stops = [
    [() => cluster.freeze(0), () => cluster.thaw(0)],
    [() => cluster.redis.pause(), () => cluster.redis.resume()],
  ] as const;
  let after: string | undefined;
  for (const [index, [stop, goOn]] of stops.entries()) {
    await stop();
    const stream = await one.getStream(after);
    expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream']);
    await stream.comments.next();
    await stream.comments.next();
    goOn();
    await two.tell(index + 1, index + 1);
    after = (await stream.events.next(isTold(index + 1))).id;
    stream.drop();
  }
});
