import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { answerTexts, call, textsOf, toldTexts, withCounting } from '../resume/counting.ts';
import type { Cluster } from '../support/cluster.ts';
import { initialize, post } from '../support/http-client.ts';
import { connectOld, initializeRequest, type OldClient, openOldStream } from '../support/old-client.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { childrenOf, settle, startFastCluster, stopSound } from './fast.ts';

const ping = (id: string | number = 'p') => ({ jsonrpc: '2.0', id, method: 'ping' });

let cluster: Cluster;
beforeAll(async () => {
  const { command = [] } = withCounting();
  cluster = await startFastCluster({
    command,
    args: ['--sse.reconnectDelay', '50ms', '--timeouts.drain', '8s'],
  });
  await settle(cluster);
});
afterAll(() => stopSound(cluster));

const killed = new Set<number>();
const kill = (instance: number, signal?: NodeJS.Signals) => {
  killed.add(instance);
  return cluster.kill(instance, signal);
};
afterEach(async () => {
  for (const instance of killed) await cluster.restart(instance);
  killed.clear();
});

const at = (instance: number): string => cluster.instances[instance % 3]?.baseUrl ?? '';

/** The notifications that a client heard. */
const told = ({ texts }: OldClient): readonly string[] => texts.filter((text) => text.includes('notifications/told'));
const hear = (client: OldClient, n: number) =>
  client.heard.next(({ params }) => params?.n === n, { what: `notification ${n}`, deadlineMs: 30_000 });

describe('a client of HTTP+SSE in a cluster', () => {
  test('can listen at one instance, initialize at another one and ask at a third one', async () => {
    const client = await connectOld(at(0), { initializeAt: at(1) });
    const before = performance.now();
    for (const instance of [0, 1, 2]) {
      await client.request('ping', undefined, { id: `at ${instance}`, baseUrl: at(instance) });
    }
    expect(performance.now() - before).toBeLessThan(2_000);
    await client.request('test/tell', { from: 1, to: 5, burst: 2, gapMs: 1, pad: 0 }, { baseUrl: at(2) });
    await hear(client, 5);
    expect(told(client)).toEqual(toldTexts(5));
    client.drop();
  });

  test('[S01b] has a token that opens nothing else, at any instance', async () => {
    const client = await connectOld(at(0), { initializeAt: at(2) });
    const session = await initialize(`${at(1)}/mcp`);
    for (const instance of [0, 1, 2]) {
      const answer = await post(`${at(instance)}/mcp`, ping(), { 'Mcp-Session-Id': client.token });
      expect(answer.status).toBe(404);
      expect((await post(`${at(instance)}/messages?token=${session.id}`, ping())).status).toBe(404);
      const again = await client.post(initializeRequest(), at(instance));
      expect([again.status, again.json.error.data.reason]).toEqual([400, 'used_token']);
    }
    await client.request('ping');
    await session.delete();
    client.drop();
  });

  test('[P4] hears everything once and in order, cut at any event and back at any instance', async () => {
    const client = await connectOld(at(0), { initializeAt: at(1) });
    const to = 120;
    const cuts = [1, 2, 3, 7, 20, 21, 40, 77, 78, 119];
    const telling = client.post(call('t', 'test/tell', { from: 1, to, burst: 3, gapMs: 8, pad: 3 }), at(2));
    for (const [index, n] of cuts.entries()) {
      await hear(client, n);
      client.drop();
      await client.connect(at(index));
    }
    await hear(client, to);
    expect((await telling).status).toBe(202);
    expect(told(client)).toEqual(toldTexts(to, 3));
    // From any place again, at any instance: exactly what came after it.
    const events = client.events.filter(({ data }) => data?.includes('notifications/told'));
    for (const n of [0, 1, 60, 118]) {
      const again = await client.connect(at(n), events[n]?.id);
      await again.events.next(({ data }) => data === toldTexts(to, 3, to)[0]);
      expect(again.events.items[0]).toMatchObject({ event: 'endpoint', data: client.endpoint, id: events[n]?.id });
      expect(textsOf(again.events.items.slice(1))).toEqual(toldTexts(to, 3, n + 2));
    }
    client.drop();
  });

  test('[P4] that heard nothing but its endpoint hears everything when it comes back', async () => {
    const client = await openOldStream(at(0));
    client.drop();
    expect((await client.post(initializeRequest(), at(1))).status).toBe(202);
    await client.connect(at(2));
    await client.response(0);
    client.drop();
  });

  test('[P3] whose owner is killed hears the end of each call on the connection that it has', async () => {
    const client = await connectOld(at(0), { initializeAt: at(1) });
    for (const id of ['held 1', 'held 2']) {
      expect((await client.post(call(id, 'test/hold'), at(2))).status).toBe(202);
    }
    await client.request('test/emit', { token: 'held 1', count: 2, pad: 0 });
    await kill(1);
    for (const id of ['held 1', 'held 2']) {
      expect((await client.response(id)).error.data.reason).toBe('outcome_unknown');
    }
    await client.request('ping', undefined, { id: 'after', baseUrl: at(2) });
    expect(client.heard.items.filter(({ id, error }) => id?.startsWith?.('held') && error)).toHaveLength(2);
    expect(client.events.filter(({ event }) => event === 'endpoint')).toHaveLength(1);
    client.drop();
  });

  test('[P3] whose owner is killed has its harmless calls run again', async () => {
    const client = await connectOld(at(0), { initializeAt: at(1) });
    await cluster.freeze(1);
    const posted = client.post({ jsonrpc: '2.0', id: 'list', method: 'tools/list' }, at(2));
    await kill(1);
    expect((await posted).status).toBe(202);
    expect((await client.response('list')).result).toEqual({ tools: [] });
    expect(client.heard.items.filter(({ id }) => id === 'list')).toHaveLength(1);
    client.drop();
  });

  test('[P3] whose listener and owner are one instance that is killed finds the end of its calls elsewhere', async () => {
    const client = await connectOld(at(0));
    expect((await client.post(call('held', 'test/hold'))).status).toBe(202);
    await kill(0);
    await client.stream.ended;
    await client.connect(at(1));
    expect((await client.response('held')).error.data.reason).toBe('outcome_unknown');
    await client.request('ping', undefined, { id: 'after', baseUrl: at(2) });
    client.drop();
  });

  test('[F03] whose listener is killed goes on elsewhere, and its call with it', async () => {
    const client = await connectOld(at(0), { initializeAt: at(1) });
    expect((await client.post(call('held', 'test/hold'), at(2))).status).toBe(202);
    await kill(0);
    await client.stream.ended;
    const emit = { jsonrpc: '2.0', id: 'emit', method: 'test/emit', params: { token: 'held', count: 3, pad: 0 } };
    const emitted = client.post(emit, at(2));
    await client.connect(at(2));
    expect((await emitted).status).toBe(202);
    await client.request('test/finish', { token: 'held' }, { baseUrl: at(1), id: 'finish' });
    expect((await client.response('held')).result).toEqual({ counted: 3 });
    client.drop();
  });

  test('[P7] loses nothing while Redis is away for a moment, and is answered once', async () => {
    const client = await connectOld(at(0), { initializeAt: at(1) });
    expect((await client.post(call('held', 'test/hold'), at(1))).status).toBe(202);
    await cluster.redis.pause();
    const posted = client.post({ jsonrpc: '2.0', id: 'ping', method: 'ping' }, at(1));
    const finish = { jsonrpc: '2.0', id: 'finish', method: 'test/finish', params: { token: 'held' } };
    const finished = client.post(finish, at(1));
    await expect(withDeadline(posted, { deadlineMs: 500 })).rejects.toThrow();
    expect(client.heard.items.map(({ id }) => id)).toEqual([0]);
    cluster.redis.resume();
    expect([(await posted).status, (await finished).status]).toEqual([202, 202]);
    for (const id of ['ping', 'held', 'finish']) await client.response(id);
    await client.request('ping', undefined, { id: 'last', baseUrl: at(2) });
    const ids = client.heard.items.map(({ id }) => id);
    expect(ids.sort()).toEqual([0, 'finish', 'held', 'last', 'ping']);
    client.drop();
  });

  test('[P10] that went leaves no process, wherever it listened', async () => {
    const own = await startFastCluster({
      command: withCounting().command ?? [],
      redis: cluster.redis,
      args: ['--timeouts.sessionIdle', '4s', '--cluster.prefix', 'other'],
    });
    const [here = '', there = ''] = own.instances.map(({ baseUrl }) => baseUrl);
    const clients = [await connectOld(here), await connectOld(here, { initializeAt: there })];
    const logged = (msg: string) =>
      own.instances.flatMap((gateway) => gateway.logs()).filter((line) => line['msg'] === msg);
    const pids = new Set(logged('session started').map(({ pid }) => pid));
    expect(pids.size).toBe(2);
    for (const client of clients) client.drop();
    await waitFor(async () => (await childrenOf(own)).every(({ pid }) => !pids.has(pid)), {
      what: 'the servers to end',
    });
    expect(logged('session ended').map(({ reason }) => reason)).toEqual(['client_gone', 'client_gone']);
    await own.stop();
  });
});

describe('[P9] SIGTERM', () => {
  const drain = async (instance: number, during: () => Promise<void>): Promise<number> => {
    const began = performance.now();
    const ended = kill(instance, 'SIGTERM');
    await during();
    expect(await withDeadline(ended, { deadlineMs: 15_000 })).toEqual({ code: 0, signal: null });
    return performance.now() - began;
  };

  test('on the owner: its session goes on elsewhere, and the listener keeps its connection', async () => {
    const client = await connectOld(at(0), { initializeAt: at(1) });
    const tookMs = await drain(1, async () => {
      const count = call('c', 'test/count', { count: 5, burst: 1, gapMs: 50, pad: 0 });
      expect((await client.post(count, at(2))).status).toBe(202);
      expect((await client.response('c')).result).toEqual({ counted: 5 });
    });
    expect(tookMs).toBeLessThan(7_000);
    expect(client.texts.slice(1)).toEqual(answerTexts('c', 5));
    await client.request('test/tell', { from: 1, to: 3, burst: 1, gapMs: 1, pad: 0 }, { baseUrl: at(2) });
    await hear(client, 3);
    expect(told(client)).toEqual(toldTexts(3));
    expect(client.events.filter(({ event }) => event === 'endpoint')).toHaveLength(1);
    client.drop();
  });

  test.each([
    ['of a session of its own', 0],
    ['of the session of another one', 1],
  ])(
    'on the listener %s: the stream is open to the end of grace, for clients that do not come back',
    async (_, owner) => {
      const client = await connectOld(at(0), { initializeAt: at(owner) });
      const { stream } = client;
      const tookMs = await drain(0, async () => {
        await client.request('ping', undefined, { id: 'amid', baseUrl: at(1) });
        const listened = await stream.ended;
        expect(listened.isWhole).toBe(true);
        expect(listened.events.at(-1)).toEqual({ retry: expect.any(Number) });
      });
      expect(tookMs).toBeGreaterThan(1_000);
      expect(tookMs).toBeLessThan(9_000);
      await client.connect(at(2));
      await client.request('ping', undefined, { id: 'after', baseUrl: at(1) });
      client.drop();
    },
  );
});
