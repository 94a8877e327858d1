import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { answerTexts, call, toldTexts, withCounting } from '../resume/counting.ts';
import type { Cluster } from '../support/cluster.ts';
import { initialize, post } from '../support/http-client.ts';
import { connectOld, initializeRequest, type OldClient } from '../support/old-client.ts';
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

  test('[P3] whose instance is killed is unknown at the others at once, and goes on in a new session', async () => {
    const client = await connectOld(at(0), { initializeAt: at(1) });
    expect((await client.post(call('held', 'test/hold'), at(2))).status).toBe(202);
    await kill(0);
    await client.stream.ended;
    const refused = await client.post(ping('late'), at(1));
    expect([refused.status, refused.json.id]).toEqual([404, 'late']);
    // An EventSource comes back, and its application sends no `initialize`.
    await client.connect(at(1));
    await client.request('ping', undefined, { id: 'after', baseUrl: at(2) });
    client.drop();
  });

  test('[P7] is not told that it is unknown while Redis is away, and is answered once', async () => {
    const client = await connectOld(at(0), { initializeAt: at(1) });
    expect((await client.post(call('held', 'test/hold'), at(1))).status).toBe(202);
    await cluster.redis.pause();
    const posted = client.post(ping('ping'), at(1));
    const finish = { jsonrpc: '2.0', id: 'finish', method: 'test/finish', params: { token: 'held' } };
    const finished = client.post(finish, at(0)); // which has the stream, and needs no Redis
    expect((await finished).status).toBe(202);
    await client.response('held');
    await expect(withDeadline(posted, { deadlineMs: 500 })).rejects.toThrow();
    cluster.redis.resume();
    expect((await posted).status).toBe(202);
    for (const id of ['ping', 'finish']) await client.response(id);
    await client.request('ping', undefined, { id: 'last', baseUrl: at(2) });
    const ids = client.heard.items.map(({ id }) => id);
    expect(ids.sort()).toEqual([0, 'finish', 'held', 'last', 'ping']);
    client.drop();
  });

  test('[P10] that went leaves no process', async () => {
    const own = await startFastCluster({
      command: withCounting().command ?? [],
      redis: cluster.redis,
      args: ['--cluster.prefix', 'other'],
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
    await waitFor(() => logged('session ended').length === 2, { what: 'the lines of both ends' });
    expect(logged('session ended').map(({ reason }) => reason)).toEqual(['client_gone', 'client_gone']);
    await own.stop();
  });
});

test('[P9] at SIGTERM a call ends as it should, then the stream does, in order', async () => {
  const client = await connectOld(at(0), { initializeAt: at(1) });
  const { stream } = client;
  const count = call('c', 'test/count', { count: 5, burst: 1, gapMs: 50, pad: 0 });
  expect((await client.post(count, at(2))).status).toBe(202);
  const ended = kill(0, 'SIGTERM');
  expect((await client.response('c')).result).toEqual({ counted: 5 });
  expect(client.texts.slice(1)).toEqual(answerTexts('c', 5));
  expect((await stream.ended).isWhole).toBe(true);
  expect(await withDeadline(ended, { deadlineMs: 15_000 })).toEqual({ code: 0, signal: null });
  await client.connect(at(2));
  await client.request('ping', undefined, { id: 'after', baseUrl: at(1) });
  client.drop();
});
