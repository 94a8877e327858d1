import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openCounting, withCounting } from '../resume/counting.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { initialize } from '../support/http-client.ts';
import type { NetProxy } from '../support/net-proxy.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { countOutcomes } from '../support/traffic.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Busy, isFullSize, startBusy, statusesIn } from './busy.ts';
import { leaseMs, untilPassed, urlOf } from './patience.ts';

/** One for all. */
let redis: RedisServer;
beforeAll(async () => {
  redis = await startUsedRedis();
});
afterAll(() => redis?.stop());

interface Peers {
  readonly direct: number;
  readonly store: number;
}

/** How an instance reaches its peers, as `/readyz` says. */
async function peersOf({ instances }: Cluster, instance: number): Promise<Peers | undefined> {
  const response = await fetch(`${instances[instance]?.baseUrl}/readyz`);
  return ((await response.json()) as { peers?: Peers }).peers;
}

/** Resolves when messages between the two instances go directly. */
const linked = (cluster: Cluster) =>
  waitFor(async () => (await peersOf(cluster, 0))?.direct === 1 && (await peersOf(cluster, 1))?.direct === 1, {
    what: 'a direct link',
    deadlineMs: 25_000,
    intervalMs: 50,
  });

const bothOf = ({ linkProxies }: Cluster): readonly NetProxy[] => linkProxies;

/** @param outcomes what calls may end in */
async function expectAllWell(busy: Busy, outcomes: readonly string[]): Promise<void> {
  await busy.more();
  const { transcripts, violations } = await busy.stop();
  expect(violations, `RESUME_SEED=${busy.seed}`).toEqual([]);
  expect(Object.keys(countOutcomes(transcripts)).filter((outcome) => !outcomes.includes(outcome))).toEqual([]);
  expect(statusesIn(transcripts)).not.toContain(404);
  await busy.allGoOn();
}

const startLinked = async (): Promise<Busy> => {
  const busy = await startBusy({ redis, instances: 2, link: 'proxied' });
  await busy.more();
  await linked(busy.cluster);
  return busy;
};

/** Both instances live, so every call gets its answer, whatever becomes of the link. */
const answered = ['answered', 'broken']; // clients break connections, too
const ofLostOwner = ['answered', 'broken', 'outcome_unknown', 'store_unavailable'];

describe('a direct link', () => {
  test.each([1, 30, 1_000, 5_000, ...(isFullSize ? [60_000] : [])])(
    '[P3] [P4] that is cut for %i ms: every call is answered once and in order, and the link is used again',
    async (ms) => {
      const busy = await startLinked();
      for (const proxy of bothOf(busy.cluster)) {
        await proxy.refuse();
        proxy.resetAll();
      }
      await untilPassed(performance.now(), ms);
      for (const proxy of bothOf(busy.cluster)) await proxy.accept();
      await busy.more();
      await linked(busy.cluster);
      await expectAllWell(busy, answered);
    },
    180_000,
  );

  test('[P3] [P4] that is cut again and again loses, repeats and reorders nothing', async () => {
    const busy = await startLinked();
    for (let cuts = 0; cuts < (isFullSize ? 500 : 40); cuts += 1) {
      await waitFor(() => bothOf(busy.cluster).some(({ openCount }) => openCount > 0), { what: 'a connection' });
      await untilPassed(performance.now(), Math.random() * 100);
      for (const proxy of bothOf(busy.cluster)) proxy.resetAll();
    }
    await expectAllWell(busy, answered);
  }, 300_000);

  test.each([[undefined], ['toServer'], ['toClient']] as const)(
    '[P3] that swallows everything (%s): the instances notice, and every call is answered',
    async (direction) => {
      const busy = await startLinked();
      for (const proxy of bothOf(busy.cluster)) proxy.blackHoleAll(direction);
      await busy.more();
      await linked(busy.cluster);
      await expectAllWell(busy, answered);
    },
    120_000,
  );

  test('[P3] [P4] that holds bytes back for as long as a lease: late messages are repeats', async () => {
    const busy = await startLinked();
    for (const proxy of bothOf(busy.cluster)) proxy.set({ toServer: { isHeld: true }, toClient: { isHeld: true } });
    await untilPassed(performance.now(), leaseMs);
    for (const proxy of bothOf(busy.cluster)) proxy.set({});
    await expectAllWell(busy, answered);
  }, 120_000);

  test('[P3] that passes 64 kB/s: every call is answered', async () => {
    const busy = await startLinked();
    const slow = { bytesPerSecond: 64_000 };
    for (const proxy of bothOf(busy.cluster)) proxy.set({ toServer: slow, toClient: slow });
    await busy.more();
    for (const proxy of bothOf(busy.cluster)) proxy.set({});
    await expectAllWell(busy, answered);
  }, 120_000);

  test.each([300, 3_000])(
    '[P3] [P6] to a peer that is frozen for %i ms: each call ends once, as with a lost owner',
    async (ms) => {
      const busy = await startLinked();
      await busy.cluster.freeze(1);
      await untilPassed(performance.now(), ms);
      busy.cluster.thaw(1);
      await busy.more();
      await linked(busy.cluster);
      await expectAllWell(busy, ofLostOwner);
    },
    120_000,
  );

  test('[P3] [P6] to a peer that is killed, and replaced under the same address', async () => {
    const busy = await startLinked();
    await busy.cluster.kill(1);
    await busy.cluster.restart(1);
    await busy.more();
    await linked(busy.cluster);
    await expectAllWell(busy, ofLostOwner);
  }, 120_000);

  test('is not used between instances with different secrets, until they share one', async () => {
    const [old, fresh] = ['o', 'n'].map((letter) => letter.repeat(32)) as [string, string];
    const keys: string[][] = [[old], [fresh]];
    const cluster = await startCluster({
      redis,
      instances: 2,
      link: 'direct',
      ...withCounting(),
      args: (instance) => ['--drain-ms', '0', ...(keys[instance] ?? []).flatMap((key) => ['--state-key', key])],
    });
    const answersBothWays = async (): Promise<void> => {
      for (const [owner, other] of [
        [0, 1],
        [1, 0],
      ] as const) {
        const session = await initialize(urlOf(cluster, owner));
        const answer = await session.at(urlOf(cluster, other)).request('ping');
        expect(answer.json).toHaveProperty('result');
      }
    };
    for (let n = 0; n < 3; n += 1) await answersBothWays();
    expect([await peersOf(cluster, 0), await peersOf(cluster, 1)]).toEqual([
      { direct: 0, store: 1 },
      { direct: 0, store: 1 },
    ]);
    keys[1] = [fresh, old];
    await cluster.restart(1);
    await answersBothWays();
    await linked(cluster);
    await answersBothWays();
  }, 60_000);

  test('[P5] carries large messages without Redis', async () => {
    const cluster = await startCluster({
      redis,
      instances: 2,
      link: 'direct',
      ...withCounting('--upgrade-after-ms', '20000'),
    });
    const session = await openCounting(urlOf(cluster, 0));
    const there = session.at(urlOf(cluster, 1));
    const answersLarge = async (bytes: number): Promise<void> => {
      const { json } = await there.request('test/large', { bytes });
      expect(json.result.text.length).toBe(bytes);
    };
    await answersLarge(1);
    await linked(cluster);
    await answersLarge(1);
    const before = await postedBytes();
    for (let calls = 0; calls < 10; calls += 1) await answersLarge(1024 * 1024);
    expect(await postedBytes()).toBe(before);
  }, 60_000);
});

/** The bytes that were ever put into mailboxes. */
async function postedBytes(): Promise<string> {
  const keys = (await redis.cli('KEYS', '*:posted')).split('\n').filter((key) => key !== '');
  return (await Promise.all(keys.sort().map((key) => redis.cli('GET', key)))).join();
}
