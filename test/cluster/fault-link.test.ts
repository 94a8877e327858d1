import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { answerTexts, call, openCounting, textsOf, withCounting } from '../resume/counting.ts';
import { type Cluster, type LinkKind, startCluster } from '../support/cluster.ts';
import { root } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import type { NetProxy } from '../support/net-proxy.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { countOutcomes } from '../support/traffic.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Busy, isFullSize, startBusy, statusesIn } from './busy.ts';
import { faultArgs, leaseMs, untilPassed, urlOf } from './patience.ts';

/** One for all. */
let redis: RedisServer;
beforeAll(async () => {
  redis = await startUsedRedis();
});
afterAll(() => redis?.stop());

interface Peers {
  readonly reachable: number;
  readonly unreachable: number;
}

/** Which of its peers an instance reaches, as `/readyz` says. */
async function peersOf({ instances }: Cluster, instance: number): Promise<Peers | undefined> {
  const response = await fetch(`${instances[instance]?.baseUrl}/readyz`);
  return ((await response.json()) as { peers?: Peers }).peers;
}

/** Resolves when the two instances reach each other. */
const linked = (cluster: Cluster) =>
  waitFor(async () => (await peersOf(cluster, 0))?.reachable === 1 && (await peersOf(cluster, 1))?.reachable === 1, {
    what: 'a connection',
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

const startLinked = async (link: LinkKind = 'proxied'): Promise<Busy> => {
  const busy = await startBusy({ redis, instances: 2, link });
  await busy.more();
  await linked(busy.cluster);
  return busy;
};

/** Where nothing is lost. Clients break connections, too. */
const answered = ['answered', 'broken'];
/** A call that was under way has an unknown outcome, and a later one is refused before it runs. */
const ofLostLink = [...answered, 'outcome_unknown', 'owner_unreachable'];
const ofLostOwner = [...ofLostLink, 'store_unavailable'];

describe('the connection between two instances', () => {
  test.each([1, 30, 1_000, 5_000, ...(isFullSize ? [60_000] : [])])(
    '[P3] [P4] [P7] that is cut for %i ms: no call is lost, repeated or reordered, and all is well afterwards',
    async (ms) => {
      const busy = await startLinked();
      for (const proxy of bothOf(busy.cluster)) {
        await proxy.refuse();
        proxy.resetAll();
      }
      await untilPassed(performance.now(), ms);
      for (const proxy of bothOf(busy.cluster)) await proxy.accept();
      await linked(busy.cluster);
      await busy.more();
      await expectAllWell(busy, ofLostLink);
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
    await expectAllWell(busy, ofLostLink);
  }, 300_000);

  test.each([[undefined], ['toServer'], ['toClient']] as const)(
    '[P3] that swallows everything (%s): the instances notice, and every call is answered',
    async (direction) => {
      const busy = await startLinked();
      for (const proxy of bothOf(busy.cluster)) proxy.blackHoleAll(direction);
      await busy.more();
      await linked(busy.cluster);
      await expectAllWell(busy, ofLostLink);
    },
    120_000,
  );

  test('[P3] [P4] that holds bytes back for as long as a lease: what comes late does not count', async () => {
    const busy = await startLinked();
    for (const proxy of bothOf(busy.cluster)) proxy.set({ toServer: { isHeld: true }, toClient: { isHeld: true } });
    await untilPassed(performance.now(), leaseMs);
    for (const proxy of bothOf(busy.cluster)) proxy.set({});
    await expectAllWell(busy, ofLostLink);
  }, 120_000);

  test('[P3] that passes 64 kB/s: every call is answered', async () => {
    const busy = await startLinked();
    const slow = { bytesPerSecond: 64_000 };
    for (const proxy of bothOf(busy.cluster)) proxy.set({ toServer: slow, toClient: slow });
    await busy.more();
    for (const proxy of bothOf(busy.cluster)) proxy.set({});
    await expectAllWell(busy, answered);
  }, 120_000);

  test.each([
    [300, 'proxied'],
    [3_000, 'proxied'],
    [300, 'local'],
    [3_000, 'local'],
  ] as const)(
    '[P3] [P6] to a peer that is frozen for %i ms (%s): each call ends once, as with a lost owner',
    async (ms, link) => {
      const busy = await startLinked(link);
      await busy.cluster.freeze(1);
      await untilPassed(performance.now(), ms);
      busy.cluster.thaw(1);
      await busy.more();
      await linked(busy.cluster);
      await expectAllWell(busy, ofLostOwner);
    },
    120_000,
  );

  test.each(['proxied', 'local'] as const)(
    '[P3] [P6] to a peer that is killed (%s), and replaced under the same address or on the same host',
    async (link) => {
      const busy = await startLinked(link);
      await busy.cluster.kill(1);
      await busy.cluster.restart(1);
      await busy.more();
      await linked(busy.cluster);
      await expectAllWell(busy, ofLostOwner);
    },
    120_000,
  );

  test('[P3] [P4] [P9] in an upgrade to the next version, one instance after the other: nothing is lost or doubled', async () => {
    const later = await programWithNextVersion(0);
    const hasLater = new Set([1]);
    const programOf = (instance: number) => (hasLater.has(instance) ? later : undefined);
    const busy = await startBusy({ redis, instances: 2, link: 'local', programOf });
    await busy.more();
    await linked(busy.cluster);
    hasLater.add(0);
    busy.cluster.balancer.setInRotation(0, false);
    await busy.cluster.restart(0);
    await busy.more();
    await linked(busy.cluster);
    await expectAllWell(busy, answered);
  }, 120_000);

  /** Which answer each instance gives to a session of the other one: a result, or the reason of a fault. */
  const answersBothWays = (cluster: Cluster): Promise<unknown[]> =>
    Promise.all(
      [0, 1].map(async (owner) => {
        const session = await initialize(urlOf(cluster, owner));
        const { json } = await session.at(urlOf(cluster, 1 - owner)).request('ping');
        return json.result === undefined ? json.error.data.reason : 'result';
      }),
    );
  const apart = { reachable: 0, unreachable: 1 };

  test('[P7] between versions that have nothing in common is refused on both sides, and the log says why', async () => {
    const later = await programWithNextVersion(1);
    const programOf = (instance: number) => (instance === 1 ? later : undefined);
    const cluster = await startCluster({ redis, instances: 2, link: 'local', programOf, ...withCounting() });
    expect(await answersBothWays(cluster)).toEqual(['instances_differ', 'instances_differ']);
    expect([await peersOf(cluster, 0), await peersOf(cluster, 1)]).toEqual([apart, apart]);
    for (const gateway of cluster.instances)
      expect(gateway.logs()).toContainEqual(
        expect.objectContaining({ level: 'warn', detail: expect.stringContaining('incompatible version') }),
      );
  }, 60_000);

  test('between instances with different secrets is refused, until they share one', async () => {
    const [old, fresh] = ['o', 'n'].map((letter) => letter.repeat(32)) as [string, string];
    const keys: string[][] = [[old], [fresh]];
    const cluster = await startCluster({
      redis,
      instances: 2,
      link: 'local',
      ...withCounting(),
      args: (instance) => [
        ...faultArgs,
        '--timeouts.drain',
        '0',
        ...(keys[instance] ?? []).flatMap((key) => ['--cluster.stateKeys', key]),
      ],
    });
    expect(await answersBothWays(cluster)).toEqual(['instances_differ', 'instances_differ']);
    expect([await peersOf(cluster, 0), await peersOf(cluster, 1)]).toEqual([apart, apart]);
    keys[1] = [fresh, old];
    await cluster.restart(1);
    keys[0] = [fresh, old];
    await cluster.restart(0);
    await linked(cluster);
    expect(await answersBothWays(cluster)).toEqual(['result', 'result']);
  }, 60_000);

  test.each(['local', 'direct'] as const)(
    '[P5] carries large messages, and floods of events (%s)',
    async (link) => {
      const cluster = await startCluster({
        redis,
        instances: 2,
        link,
        ...withCounting('--sse.streamAfter', '20s'),
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
      for (let calls = 0; calls < 10; calls += 1) await answersLarge(1024 * 1024);
      const flood = session.listen(
        { body: call('flood', 'test/count', { count: floodEvents, burst: 100 }) },
        urlOf(cluster, 1),
      );
      const { events } = await flood.ended;
      expect(textsOf(events)).toEqual(answerTexts('flood', floodEvents));
    },
    60_000,
  );
});

const floodEvents = 5_000;

/**
 * A gateway that speaks the next version with other instances, and reads the next version of session records.
 * @param dropped how many of today's versions it does not speak
 */
async function programWithNextVersion(dropped: 0 | 1) {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-later-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await cp(`${root}dist`, join(folder, 'dist'), { recursive: true });
  for (const name of ['node_modules', 'package.json']) await symlink(`${root}${name}`, join(folder, name));
  let changes = 0;
  for (const name of await readdir(join(folder, 'dist'))) {
    const file = join(folder, 'dist', name);
    const code = name.endsWith('.js') ? await readFile(file, 'utf8') : '';
    const later = code
      .replace(/newest:(\d+),oldest:(\d+)/, (_, newest, oldest) => {
        changes += 1;
        return `newest:${Number(newest) + 1},oldest:${Number(oldest) + dropped}`;
      })
      .replace(/(written:\d+,oldest:\d+,newest:)(\d+)/, (_, others, newest) => {
        changes += 1;
        return `${others}${Number(newest) + 1}`;
      });
    if (later !== code) await writeFile(file, later);
  }
  expect(changes).toBe(2);
  return [process.execPath, join(folder, 'dist', 'main.js')];
}
