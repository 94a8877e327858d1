import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { countOutcomes } from '../support/traffic.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { loadMs, waitFor, withDeadline } from '../support/wait-for.ts';
import { type Busy, headOf, startBusy, statusesIn } from './busy.ts';
import { answerOn, createNotes, openHeld } from './held.ts';
import { faultArgs, healthOf, leaseMs, mayTakeOver, urlOf } from './patience.ts';

/** What calls may end in while Redis does not answer; never `none` (a hang), `unknown_session` or `internal`. */
const outcomes = ['answered', 'broken', 'outcome_unknown', 'store_unavailable', 'owner_unreachable'];

/** One for all. */
let redis: RedisServer;
beforeAll(async () => {
  redis = await startUsedRedis();
});
afterAll(() => redis?.stop());

async function expectAllWell(busy: Busy): Promise<void> {
  const { transcripts, violations } = await busy.stop();
  expect(violations, `RESUME_SEED=${busy.seed}`).toEqual([]);
  expect(Object.keys(countOutcomes(transcripts)).filter((outcome) => !outcomes.includes(outcome))).toEqual([]);
  expect(statusesIn(transcripts)).not.toContain(404);
  await busy.allGoOn();
}

const baseUrls = ({ instances }: Cluster): readonly string[] => instances.map(({ baseUrl }) => baseUrl);

/** Asks all instances for their health until all say so; `/healthz` has to be well all the time. */
async function allSay(cluster: Cluster, said: string): Promise<void> {
  const say = async (baseUrl: string): Promise<boolean> => {
    expect((await healthOf(baseUrl, '/healthz')).status).toBe(200);
    return (await healthOf(baseUrl, '/readyz')).said === said;
  };
  const what = `all instances to be ${said}`;
  await waitFor(async () => (await Promise.all(baseUrls(cluster).map(say))).every(Boolean), {
    what,
    deadlineMs: 20_000,
  });
}

describe('a Redis', () => {
  test('[F08] [P7] that answers after 2 s: requests wait a bounded time, health stays up, and it is over when it is over', async () => {
    const busy = await startBusy({ redis, isPartitionable: true });
    await busy.more();
    for (const proxy of busy.cluster.redisProxies) proxy.set({ toClient: { latencyMs: 2_000 } });
    await allSay(busy.cluster, 'unavailable');
    const begin = performance.now();
    const { status } = await headOf(busy.cluster.url, busy.traffic.transcripts[0]?.sessionId as string);
    expect(status).toBe(503);
    expect(performance.now() - begin).toBeLessThan(1_000 + leaseMs + 2_000);
    for (const proxy of busy.cluster.redisProxies) proxy.set({});
    await allSay(busy.cluster, 'ready');
    await busy.more();
    await expectAllWell(busy);
  }, 120_000);

  test('[F08] that is a black hole on all connections: readers and commands find new ones by themselves', async () => {
    const busy = await startBusy({ redis, isPartitionable: true });
    await busy.more();
    for (const proxy of busy.cluster.redisProxies) proxy.blackHoleAll();
    await busy.more();
    await allSay(busy.cluster, 'ready');
    await expectAllWell(busy);
  }, 120_000);

  test('[F09] [P5] that is full: no event is sent that is not stored, leases hold, and it goes on when there is room', async () => {
    const busy = await startBusy({ redis });
    const { instances } = busy.cluster;
    await busy.more();
    const leases = (await redis.cli('KEYS', '*:lease')).split('\n').sort();
    await redis.fill();
    const filledAt = performance.now();
    // Beyond a lease: those that could not be renewed would be gone.
    await waitFor(() => performance.now() - filledAt > 2 * leaseMs);
    expect((await redis.cli('KEYS', '*:lease')).split('\n').sort()).toEqual(leases);
    for (const { baseUrl } of instances) expect((await healthOf(baseUrl, '/readyz')).said).toBe('ready');
    await redis.unfill();
    await busy.more();
    await expectAllWell(busy);
  }, 120_000);

  test('[F09] [P3] [P5] [P7] that stays full: a call ends with its answer, or an error, that has no event id, and none hangs', async () => {
    const notes = await createNotes();
    const idleMs = 2_000;
    const args = [...faultArgs, '--timeouts.requestIdle', `${idleMs}ms`];
    const cluster = await startCluster({ redis, instances: 2, command: notes.command, args });
    await mayTakeOver(cluster);
    const at = urlOf(cluster, 0);
    const open = async (name: string) => {
      const client = await openHeld(at, name, notes);
      return { client, stream: await client.call(at, { method: 'tools/call', reports: 2 }) };
    };
    const [held, answered] = [await open('held'), await open('answered')];
    await redis.fill();
    // Its answer is there, and cannot be stored.
    expect(await answered.client.release(at)).toBe(200);
    for (const [{ client, stream }, end] of [
      [answered, '"result"'],
      [held, '"reason":"request_timeout"'],
    ] as const) {
      const { events } = await withDeadline(stream.ended, { deadlineMs: idleMs + 4_000 + loadMs });
      expect(events.at(-1)?.data).toContain(end);
      // What has no id comes last.
      const unlogged = events.slice(events.findIndex(({ id }) => id === undefined));
      expect(unlogged.map(({ id }) => id)).toEqual(unlogged.map(() => undefined));
      expect(await client.ping(at)).toBe(200);
    }
    await redis.unfill();
    // What could not be stored then, is now, for whoever asks.
    const resumed = answered.client.resume(urlOf(cluster, 1));
    await answerOn(resumed);
    expect(resumed.listened.events.at(-1)?.data).toContain('"result"');
    await notes.remove();
  }, 60_000);

  test('[F10] that forgets its scripts gets them again, and nothing is lost or doubled', async () => {
    const busy = await startBusy({ redis });
    for (let flush = 0; flush < 5; flush++) {
      await busy.more(busy.traffic.transcripts.length);
      await busy.cluster.redis.flushScripts();
    }
    await busy.more();
    await expectAllWell(busy);
    expect(Object.keys(countOutcomes(busy.traffic.transcripts)).sort()).toEqual(
      expect.not.arrayContaining(['store_unavailable', 'outcome_unknown']),
    );
  }, 120_000);

  test('[F10] [P4] [P5] whose connections are cut before the reply, at many bytes: no event is doubled, and none is missing', async () => {
    const busy = await startBusy({ redis, isPartitionable: true });
    await busy.more();
    // Replies of `append` are some bytes long; several of them, and renewals, are in what is cut.
    for (const bytes of Array.from({ length: 24 }, (_, cut) => 1 + cut * cut)) {
      const open = busy.cluster.redisProxies.flatMap(({ connections }) =>
        connections.items.filter(({ isOpen }) => isOpen),
      );
      for (const connection of open) connection.set({ toClient: { cutAfterBytes: bytes } });
      await Promise.all(open.map(({ closed }) => closed));
    }
    await busy.more();
    await expectAllWell(busy);
  }, 120_000);
});
