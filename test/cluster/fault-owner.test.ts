import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { violationsOf } from '../support/log-checker.ts';
import { descendantsOf, waitUntilGone } from '../support/processes.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { readLogs } from '../support/session-logs.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { answerOn, createNotes, type HeldClient, type Notes, openHeld } from './held.ts';
import { faultArgs, healthOf, leaseMs, mayTakeOver, untilPassed, urlOf } from './patience.ts';

/** One for all. */
let redis: RedisServer;
beforeAll(async () => {
  redis = await startUsedRedis();
});
afterAll(() => redis?.stop());

let notes: Notes;
let cluster: Cluster;

beforeEach(async () => {
  notes = await createNotes();
  cluster = await startCluster({
    redis,
    instances: 2,
    command: notes.command,
    isPartitionable: true,
    args: [...faultArgs, '--timeouts.drain', '0'],
  });
  await mayTakeOver(cluster);
});
afterEach(() => notes.remove());

/** A session that instance 0 owns, with a call amid its stream at an instance. */
async function openStream(name: string, ingress: number) {
  const client = await openHeld(urlOf(cluster, 0), name, notes);
  const stream = await client.call(urlOf(cluster, ingress), { method: 'tools/call', reports: 2 });
  return { client, stream };
}

const childrenOf = (instance: number) => descendantsOf(cluster.instances[instance]?.pid as number);

async function violations(...clients: readonly HeldClient[]) {
  for (const client of clients) client.end();
  const [logs, executions] = [await readLogs(cluster.redis), await notes.executions()];
  return violationsOf({ transcripts: clients.map(({ transcript }) => transcript), logs, executions });
}

describe('an owner', () => {
  test('[F11] [P6] [P7] that is parted from Redis turns unready, loses what clients ask for, and keeps the rest', async () => {
    const taken = await openStream('taken', 0);
    const childOfTaken = await childrenOf(0);
    const kept = await openStream('kept', 0);
    const childOfKept = (await childrenOf(0)).filter(({ pid }) => !childOfTaken.some((child) => child.pid === pid));
    const baseUrl = cluster.instances[0]?.baseUrl as string;

    await cluster.partition(0);
    const begin = performance.now();
    expect(await taken.client.ping(urlOf(cluster, 1))).toBe(200);
    expect((await healthOf(baseUrl, '/healthz')).status).toBe(200);
    await waitFor(async () => (await healthOf(baseUrl, '/readyz')).status === 503, {
      what: 'instance 0 to be unready',
    });
    expect(performance.now() - begin).toBeGreaterThan(leaseMs);
    const resumed = taken.client.resume(urlOf(cluster, 1));
    await answerOn(resumed);
    expect(resumed.listened.events.at(-1)?.data).toContain('"reason":"outcome_unknown"');

    await cluster.heal(0);
    await waitFor(async () => (await healthOf(baseUrl, '/readyz')).said === 'ready', {
      what: 'instance 0 to be ready',
    });
    await waitUntilGone(childOfTaken);
    expect((await withDeadline(taken.stream.ended)).events.filter(({ data }) => data?.includes('"result"'))).toEqual(
      [],
    );
    // What nobody asked for goes on, with the same server, and by way of the other instance too.
    expect(await kept.client.release(urlOf(cluster, 1))).toBe(200);
    const goesOn = kept.client.resume(urlOf(cluster, 1));
    await answerOn(goesOn);
    expect(goesOn.listened.events.at(-1)?.data).toContain(`"pid":${childOfKept[0]?.pid}`);
    expect(await taken.client.ping(urlOf(cluster, 0))).toBe(200);
    expect(await violations(taken.client, kept.client)).toEqual([]);
  });

  test('[F02] [P6] frozen for two leases: what it reads and makes when it wakes reaches neither client nor log', async () => {
    const { client, stream } = await openStream('s', 0);
    const children = await childrenOf(0);
    const listener = client.listen(urlOf(cluster, 0));
    await listener.events.next();
    // The server's output waits in the pipe, and a request in the socket, until the owner wakes.
    await cluster.freeze(0);
    const frozenAt = performance.now();
    const late = client.release(urlOf(cluster, 0));
    const resumed = client.resume(urlOf(cluster, 1));
    await answerOn(resumed);
    await untilPassed(frozenAt, 2 * leaseMs);
    const seen = stream.listened.events.length;
    const before = await readLogs(cluster.redis);

    cluster.thaw(0);
    await waitUntilGone(children);
    await withDeadline(Promise.all([stream.ended, listener.ended]), {
      what: 'the connections of the old owner to end',
    });
    // The late request went to the new owner, whose server holds nothing of that name.
    expect(await late).toBe(200);
    const news = stream.listened.events.slice(seen).filter(({ data }) => data);
    expect(news.filter(({ data }) => !data?.includes('outcome_unknown'))).toEqual([]);
    const epochs = [...(await readLogs(cluster.redis))].flatMap(([name, { entries }]) =>
      entries.slice(before.get(name)?.entries.length).map(({ epoch }) => epoch),
    );
    const newest = Math.max(...[...before.values()].flatMap(({ entries }) => entries.map(({ epoch }) => epoch)));
    expect(epochs.filter((epoch) => epoch < newest)).toEqual([]);
    expect(await violations(client)).toEqual([]);
  });
});
