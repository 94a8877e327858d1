import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  answerTexts,
  type CountingSession,
  hold,
  openCounting,
  textsOf,
  toldTexts,
  withCounting,
} from '../resume/counting.ts';
import { faultsOfTranscript } from '../support/checker.ts';
import type { Cluster } from '../support/cluster.ts';
import { logNameOf } from '../support/session-logs.ts';
import type { SseEvent } from '../support/sse-reader.ts';
import { childrenOf, settle, startFastCluster, stopSound, urlOf } from './fast.ts';

let cluster: Cluster;
beforeAll(async () => {
  // With the era given, an instance does not replace the process of its start while a test counts processes.
  const args = [
    '--era',
    'legacy',
    '--sse.streamAfter',
    '5ms',
    '--sse.reconnectDelay',
    '0',
    '--replay.maxSize',
    '800MiB',
  ];
  cluster = await startFastCluster(withCounting(...args));
  await settle(cluster);
});
afterAll(() => stopSound(cluster));

type Three = readonly [CountingSession, CountingSession, CountingSession];

/** A session of instance 0 by way of each instance. */
async function openThere(version = '2025-11-25'): Promise<Three> {
  const session = await openCounting(urlOf(cluster, 0), { version });
  return [session, session.at(urlOf(cluster, 1)), session.at(urlOf(cluster, 2))];
}

const isText =
  (text: string | undefined) =>
  ({ data }: SseEvent): boolean =>
    data === text;
const told = (n: number) => isText(toldTexts(n, 0, n)[0]);
const lastId = (events: readonly SseEvent[]): string => events.findLast(({ id }) => id !== undefined)?.id ?? '';

/** Opens a call that is held, by way of this instance, and drops it after so many reports. */
async function begin(session: CountingSession, id: string, count: number) {
  const listening = await hold(session, id);
  await session.emit(id, count);
  await listening.events.next(isText(answerTexts(id, count)[count - 1]));
  listening.drop();
  return listening.ended;
}

describe.each(['2025-11-25', '2025-06-18'])(
  '[R7.15b] [P4] a resume by way of another instance, of revision %s',
  (version) => {
    const primes = version === '2025-11-25';
    /** A call whose stream has begun: where there is no priming event, with its first report. */
    const beginAny = async (session: CountingSession, id: string) => {
      if (primes) return begin(session, id, 3);
      const listening = session.listen({
        body: { jsonrpc: '2.0', id, method: 'test/hold', params: { _meta: { progressToken: id } } },
      });
      await listening.opened;
      await session.emit(id, 3);
      await listening.events.next(isText(answerTexts(id, 3)[2]));
      listening.drop();
      return listening.ended;
    };

    test('of a POST stream goes on live, from one instance to the next', async () => {
      for (const order of [
        [1, 2, 0],
        [2, 0, 1],
        [0, 1, 2],
      ]) {
        const sessions = await openThere(version);
        const [first, ...others] = order.map((index) => sessions[index]) as [CountingSession, ...CountingSession[]];
        const transcript = [await beginAny(first, 'c')];
        let said = 3;
        for (const session of others) {
          await first.emit('c', 2); // said while it is away
          const listening = session.listen({ after: lastId(transcript.at(-1)?.events ?? []) });
          await listening.events.next(isText(answerTexts('c', said + 2)[said + 1]));
          await first.emit('c', 2); // and while it listens
          said += 4;
          await listening.events.next(isText(answerTexts('c', said)[said - 1]));
          listening.drop();
          transcript.push(await listening.ended);
        }
        const listening = first.listen({ after: lastId(transcript.at(-1)?.events ?? []) });
        await listening.opened;
        await others[0]?.finish('c');
        const ended = await listening.ended;
        expect(ended.isWhole).toBe(true);
        transcript.push(ended);
        expect(faultsOfTranscript(transcript, { texts: answerTexts('c', said), primes, isWhole: true })).toEqual([]);
        await first.delete();
      }
    });

    test('[R7.16] [R9.17] of an answer that was finished while its client was away, the same everywhere', async () => {
      const sessions = await openThere(version);
      const [, one, two] = sessions;
      const dropped = await beginAny(one, 'c');
      await one.emit('c', 4);
      await two.finish('c');
      const transcript = [dropped];
      for (const session of [...sessions, ...sessions]) {
        const ended = await session.listen({ after: lastId(dropped.events) }).ended;
        expect([ended.status, ended.isWhole]).toEqual([200, true]);
        transcript.push(ended);
      }
      expect(faultsOfTranscript(transcript, { texts: answerTexts('c', 7), primes, isWhole: true })).toEqual([]);
      const after = lastId(transcript.at(-1)?.events ?? []);
      for (const session of sessions) expect((await session.listen({ after }).ended).status).toBe(204);
    });

    test('[R7.25] of the GET stream brings what was said meanwhile and what is said then; a second GET takes it over', async () => {
      const sessions = await openThere(version);
      const transcript = [];
      let said = 0;
      let after: string | undefined;
      let listening = sessions[1].listen();
      for (const session of [sessions[2], sessions[0], sessions[1], sessions[2]]) {
        await listening.opened;
        await session.tell(said + 1, said + 2);
        said += 2;
        await listening.events.next(told(said));
        const before = listening;
        // Every other time the client is away for a while; else its old connection lingers, and is ended.
        const isAway = session !== sessions[0];
        if (isAway) {
          listening.drop();
          await listening.ended;
          await session.tell(said + 1, said + 2);
          said += 2;
        }
        after = lastId(listening.events.items);
        listening = session.listen({ after });
        if (isAway) await listening.events.next(told(said));
        const ended = await before.ended;
        expect(ended.isWhole).toBe(!isAway);
        transcript.push(ended);
      }
      listening.drop();
      transcript.push(await listening.ended);
      expect(faultsOfTranscript(transcript, { texts: toldTexts(said), primes, isWhole: true })).toEqual([]);
    });
  },
);

test('[F03] [P4] after kill -9 of an instance that is not the owner a resume elsewhere is identical', async () => {
  const [own, one, two] = await openThere();
  const listening = one.listen();
  await listening.opened;
  await two.tell(1, 4);
  await listening.events.next(told(4));
  const held = await hold(one, 'c');
  await own.emit('c', 5);
  await held.events.next(isText(answerTexts('c', 5)[4]));
  await cluster.kill(1);
  const broken = await Promise.all([listening.ended, held.ended]);
  expect(broken.map(({ isWhole }) => isWhole)).toEqual([false, false]);
  await own.emit('c', 2);
  await own.finish('c');
  await own.tell(5, 6);

  const [ofGet, ofCall] = broken.map(({ events }) => events.find(({ data }) => data !== '')?.id);
  const resumed = await Promise.all([own, two].map((session) => session.listen({ after: ofCall }).ended));
  expect(
    faultsOfTranscript([broken[1], ...resumed], { texts: answerTexts('c', 7), primes: true, isWhole: true }),
  ).toEqual([]);
  const again = two.listen({ after: ofGet });
  await again.events.next(told(6));
  expect(textsOf(again.events.items)).toEqual(toldTexts(6).slice(1));
  again.drop();
  await cluster.restart(1);
});

test('[P4] [P9] an answer whose owner was shut down is had from the log, and no process is started for it', async () => {
  const [, one, two] = await openThere();
  const dropped = await begin(one, 'c', 3);
  await two.emit('c', 3);
  await two.finish('c');
  await cluster.kill(0, 'SIGTERM');
  await cluster.allChildrenEnded();

  const ownerOf = () => cluster.redis.cli('HGET', recordKey, 'owner');
  const [recordKey = ''] = (await cluster.redis.cli('KEYS', `*{${logNameOf(one.id)}}*`))
    .split('\n')
    .filter((key) => !key.endsWith(':log'));
  const before = new Set((await childrenOf(cluster)).map(({ pid }) => pid));
  const resumed = await Promise.all(
    [one, two, one].map((session) => session.listen({ after: lastId(dropped.events) }).ended),
  );
  expect(
    faultsOfTranscript([dropped, ...resumed], { texts: answerTexts('c', 6), primes: true, isWhole: true }),
  ).toEqual([]);
  expect(resumed.map(({ isWhole }) => isWhole)).toEqual([true, true, true]);
  const started = (await childrenOf(cluster)).filter(({ pid }) => !before.has(pid));
  expect([await ownerOf(), started]).toEqual(['', []]);
  // And with somebody to ask it goes on.
  expect((await two.request('test/lines')).status).toBe(200);
  await cluster.restart(0);
});
