import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type RemoteServer, startRemoteServer } from '../integration/remote-server.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { type Exchange, initialize, type Message, messagesOf, type Session } from '../support/http-client.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { faultArgs, mayTakeOver, urlOf } from './patience.ts';

/** One for all. */
let redis: RedisServer;
beforeAll(async () => {
  redis = await startUsedRedis();
});
afterAll(() => redis?.stop());

let server: RemoteServer;
let cluster: Cluster;
let session: Session;
beforeEach(async () => {
  server = await startRemoteServer('http');
  cluster = await startCluster({ redis, args: [...faultArgs, server.url] });
  await mayTakeOver(cluster);
  session = await initialize(urlOf(cluster, 0), { capabilities: { roots: {} } });
});
afterEach(() => server?.stop());

/** A session for each start probe, and this one. */
const begun = () => server.sessions() - cluster.instances.length;

const call = (id: string, name: string, args: object) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { progressToken: id } },
});

const steps = 30;
const report = (id: string) => call(id, 'progress', { count: steps, gapMs: 100, marker: id });
const progressIn = (messages: readonly Message[]): number[] =>
  messages.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params.progress);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
const logsOf = (text: string) =>
  cluster.instances.flatMap((gateway) => gateway.logs()).filter(({ msg }) => msg === text);

/** Resolves when an instance's record says how the streams of its calls stand: they have been open for a while. */
const untilTold = (exchange: Exchange) => exchange.nextMessage(({ params }) => params?.progress === 8);

describe('[P3] [P4] a session with a Streamable HTTP server whose owner is killed', () => {
  test('goes on with the server’s session: calls are answered once, nothing comes twice, nothing is forgotten', async () => {
    await session.callTool('change_list', { what: 'tools' });
    const at = session.at(urlOf(cluster, 1));
    const [first, second] = await Promise.all([at.send(report('a')), at.send(report('b'))]);
    const asking = await at.send(call('c', 'roots', {}));
    const question = await asking.nextMessage(({ method }) => method === 'roots/list');
    await Promise.all([first, second].map(untilTold));
    await cluster.kill(0);
    for (const [exchange, id] of [
      [first, 'a'],
      [second, 'b'],
    ] as const) {
      const { messages } = await exchange.answer();
      expect(progressIn(messages)).toEqual(upTo(steps));
      expect(messages.at(-1)?.result.content[0].text).toBe(id);
    }
    // The server still waits for the answer to what it had asked by way of the owner that is lost.
    await at.respond(question.id, { roots: [{ uri: 'file:///r' }] });
    expect((await asking.answer()).messages.at(-1)?.result.content[0].text).toContain('file:///r');
    const { messages } = await at.request('tools/list');
    expect(messages.at(-1)?.result.tools.some(({ name }: { name: string }) => name === 'added_1')).toBe(true);
    expect([begun(), logsOf('server restored')]).toEqual([1, []]);
    expect(logsOf('session taken over')).toHaveLength(1);
  });

  test('the GET stream too: what the server says meanwhile comes once', async () => {
    const at = session.at(urlOf(cluster, 1));
    const stream = await at.getStream();
    const say = (ms: number, data: string) => {
      const notification = { method: 'notifications/message', params: { level: 'error', data } };
      return at.callTool('later', { ms, notification });
    };
    await say(0, 'before');
    await stream.nextMessage(({ params }) => params?.data === 'before');
    await at.callTool('slow', { ms: 1_000 }); // so that the record says how the stream stands
    await say(500, 'meanwhile');
    await cluster.kill(0);
    await at.request('ping');
    await say(0, 'after');
    const seen = () => messagesOf(stream.events.items).map(({ params }) => params?.data);
    await waitFor(() => seen().includes('after') && seen().includes('meanwhile'), { what: 'what the server said' });
    expect(seen().sort()).toEqual(['after', 'before', 'meanwhile']);
    expect(begun()).toBe(1);
  });

  test('and that forgot it meanwhile is initialized anew; the call that it ran ends by P3', async () => {
    const at = session.at(urlOf(cluster, 1));
    const running = await at.send(report('a'));
    await untilTold(running);
    server.restart();
    await cluster.kill(0);
    const { messages } = await running.answer();
    expect(['server_exited', 'outcome_unknown', 'server_unreachable']).toContain(messages.at(-1)?.error.data.reason);
    expect((await at.callTool('echo', { text: 'x' })).content[0].text).toBe('x');
    expect(begun()).toBe(2);
  });

  test('[P9] drained, not killed: the next owner goes on as well', async () => {
    await session.callTool('change_list', { what: 'tools' });
    await cluster.kill(0, 'SIGTERM');
    const at = session.at(urlOf(cluster, 1));
    const { messages } = await at.request('tools/list');
    expect(messages.at(-1)?.result.tools.some(({ name }: { name: string }) => name === 'added_1')).toBe(true);
    expect(begun()).toBe(1);
  });
});

test('[R7.21] DELETE by the client ends the session at the server; the end of an instance does not', async () => {
  const probes = cluster.instances.length;
  const other = await initialize(urlOf(cluster, 0));
  await cluster.kill(0, 'SIGTERM');
  expect(server.ended()).toBe(probes);
  expect((await other.at(urlOf(cluster, 2)).delete()).status).toBeLessThan(300);
  await waitFor(() => server.ended() === probes + 1, { what: 'the session to be ended at the server' });
});
