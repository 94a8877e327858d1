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

const startLinked = async (link: LinkKind = 'proxied'): Promise<Busy> => {
  const busy = await startBusy({ redis, instances: 2, link });
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

  test.each(['local', 'direct'] as const)(
    '[P3] [P4] is not made to an instance with a later version of the link (%s): calls go through Redis, until both have it',
    async (link) => {
      const later = await programWithLaterLink();
      const hasLater = new Set([1]);
      const programOf = (instance: number) => (hasLater.has(instance) ? later : undefined);
      const busy = await startBusy({ redis, instances: 2, link, programOf });
      await busy.more();
      const apart = { direct: 0, store: 1 };
      expect([await peersOf(busy.cluster, 0), await peersOf(busy.cluster, 1)]).toEqual([apart, apart]);
      hasLater.add(0);
      busy.cluster.balancer.setInRotation(0, false);
      await busy.cluster.restart(0);
      await busy.more();
      await linked(busy.cluster);
      await expectAllWell(busy, ofLostOwner);
    },
    120_000,
  );

  test('is not used between instances with different secrets, until they share one', async () => {
    const [old, fresh] = ['o', 'n'].map((letter) => letter.repeat(32)) as [string, string];
    const keys: string[][] = [[old], [fresh]];
    const cluster = await startCluster({
      redis,
      instances: 2,
      link: 'direct',
      ...withCounting(),
      args: (instance) => [
        '--timeouts.drain',
        '0',
        ...(keys[instance] ?? []).flatMap((key) => ['--cluster.stateKeys', key]),
      ],
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

  test.each(['local', 'direct'] as const)(
    '[P5] carries large messages, and floods of events, without Redis but for the log (%s)',
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
      const before = await mailboxTraffic();
      for (let calls = 0; calls < 10; calls += 1) await answersLarge(1024 * 1024);
      const flood = session.listen(
        { body: call('flood', 'test/count', { count: floodEvents, burst: 100 }) },
        urlOf(cluster, 1),
      );
      const { events } = await flood.ended;
      expect(textsOf(events)).toEqual(answerTexts('flood', floodEvents));
      expect(await mailboxTraffic()).toEqual(before);
    },
    60_000,
  );
});

const floodEvents = 5_000;

/** The bytes that were ever put into mailboxes, and the messages that lie in them. */
async function mailboxTraffic(): Promise<readonly string[]> {
  const keysLike = async (pattern: string): Promise<readonly string[]> =>
    (await redis.cli('KEYS', pattern))
      .split('\n')
      .filter((key) => key !== '')
      .sort();
  const posted = (await keysLike('*:posted')).map((key) => redis.cli('GET', key));
  const lying = (await keysLike('*:mailbox')).map((key) => redis.cli('XLEN', key));
  return Promise.all([...posted, ...lying]);
}

/** A gateway whose link has another version, as in a rolling update. */
async function programWithLaterLink(): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-later-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await cp(`${root}dist`, join(folder, 'dist'), { recursive: true });
  for (const name of ['node_modules', 'package.json']) await symlink(`${root}${name}`, join(folder, name));
  let changes = 0;
  for (const name of await readdir(join(folder, 'dist'))) {
    const file = join(folder, 'dist', name);
    const code = name.endsWith('.js') ? await readFile(file, 'utf8') : '';
    if (!code.includes('linkVersion=1')) continue;
    await writeFile(file, code.replace('linkVersion=1', 'linkVersion=2'));
    changes += 1;
  }
  expect(changes).toBe(1);
  return [process.execPath, join(folder, 'dist', 'main.js')];
}
