import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { faultsOfTranscript, sharedIds } from '../support/checker.ts';
import { environmentNumber } from '../support/environment-number.ts';
import { type NetProxy, type Plan, startNetProxy } from '../support/net-proxy.ts';
import { follow, isResponse, type Listened } from '../support/resuming-client.ts';
import type { SseEvent } from '../support/sse-reader.ts';
import type { SessionTranscript } from '../support/transcript.ts';
import { answerTexts, type CountingSession, call, headersOf, openCounting, toldTexts } from './counting.ts';
import { createRandom, type Random, seedOfRun } from './random.ts';

/** What is recorded of so many is checked, and forgotten, before the next ones: 10,000 take some minutes. */
const resumesPerRound = 10_000;

/** What the connections lead to; each of them is cut on the client's side. It runs with `randomCutLimits`. */
export interface CutTarget {
  /** Where it listens on 127.0.0.1. */
  readonly port: number;
  readonly url: string;
  /** What it logged. */
  logs(): readonly Record<string, unknown>[];
  stop(): Promise<unknown>;
}

/** Nothing is evicted, so that every event has to come. */
export const randomCutLimits = [
  ...['--replay.maxSize', '800MiB', '--sse.reconnectDelay', '0'],
  ...['--sse.streamAfter', '5ms'],
] as const;

export interface RandomCuts<Target extends CutTarget> {
  readonly name: string;
  start(random: Random): Promise<Target>;
  /** How many resumes there are at least, unless told otherwise by `RESUME_RUNS=100000`. */
  readonly resumes: number;
  /** How many sessions make calls, and how many listen to their GET stream. */
  readonly sessions: { readonly withCalls: number; readonly withGet: number };
  /** Looks at what the sessions left behind, before they end. */
  check?(target: Target, transcripts: readonly SessionTranscript[]): Promise<void>;
}

const callsAtOnce = 4;

/** So long are the head of an answer and its priming event together, or less: a client that has them can resume. */
const beyondPriming = 400;

/** A cut at a random byte: mostly among the first events, where the seams are, sometimes far behind, sometimes none. */
function randomPlan(random: Random, from: number): Plan {
  const kind = random.next();
  const cut = kind < 0.08 ? {} : { cutAfterBytes: random.integer(from, kind < 0.6 ? 1_500 : 8_000) };
  const slow = random.chance(0.1) ? { latencyMs: random.integer(1, 8) } : {};
  const narrow = random.chance(0.05) ? { bytesPerSecond: 400_000 } : {};
  return { toClient: { ...cut, ...slow, ...narrow }, cutBy: random.chance(0.7) ? 'end' : 'reset' };
}

/** The client is back at once, or after a while, in which the server goes on, or even answers. */
const randomAbsence = (random: Random): Promise<void> | undefined =>
  random.chance(0.6) ? undefined : delay(random.chance(0.9) ? random.integer(0, 30) : random.integer(50, 300));

interface Tally {
  resumes: number;
  /** The connection broke before anything came that names a place: there is nothing to resume from. */
  cutTooEarly: number;
  answered: number;
  answeredOnResume: number;
  told: number;
  readonly faults: string[];
}

/** Clients whose connections break at random bytes get every event once and in order. */
export function testRandomCuts<Target extends CutTarget>(cuts: RandomCuts<Target>): void {
  const { withCalls, withGet } = cuts.sessions;
  const allResumes = environmentNumber('RESUME_RUNS', cuts.resumes);
  const wantedResumes = Math.min(allResumes, resumesPerRound);
  const rounds = Array.from({ length: Math.ceil(allResumes / resumesPerRound) }, (_, round) => round);
  const seed = seedOfRun();
  const root = createRandom(seed);
  let target: Target;
  beforeAll(async () => {
    target = await cuts.start(root.fork());
  });
  afterAll(async () => void (await target?.stop()));

  /** Calls, one after the other, each followed to its answer by resumes. */
  async function followCalls(
    session: CountingSession,
    name: string,
    random: Random,
    tally: Tally,
  ): Promise<FollowedCall[]> {
    const all: FollowedCall[] = [];
    let proxy: NetProxy | undefined;
    for (let number = 0; tally.resumes < wantedResumes; number++) {
      const [id, count, pad] = [`${name}-${number}`, random.integer(0, 250), random.integer(0, 40)];
      const gapMs = random.chance(0.7) ? random.integer(1, 10) : 0;
      proxy = await startNetProxy(target.port, {
        plan: (index) => randomPlan(random, index > 0 || random.chance(0.05) ? 1 : beyondPriming),
      });
      const body = { ...call(id, 'test/count'), params: { count, pad, gapMs, burst: random.integer(1, 30) } };
      const { transcript, outcome } = await follow(proxy.urlOf(target.url), {
        headers: headersOf(session),
        body: { ...body, params: { ...body.params, _meta: { progressToken: id } } },
        isLast: isResponse,
        stayAway: () => randomAbsence(random),
      });
      await proxy.close();
      all.push({ id, transcript, isGivenUp: outcome === 'lost' });
      const resumes = transcript.filter(({ after, status }) => after !== undefined && status !== 0);
      tally.resumes += resumes.length;
      if (outcome === 'lost') tally.cutTooEarly += 1;
      else if (outcome === 'json') {
        if (transcript[0]?.text !== answerTexts(id, 0)[0]) tally.faults.push(`${id}: ${transcript[0]?.text}`);
      } else {
        tally.answered += 1;
        if (resumes.at(-1)?.isWhole && resumes.length > 0) tally.answeredOnResume += 1;
        const expected = { texts: answerTexts(id, count, pad), primes: true, isWhole: outcome === 'done' };
        tally.faults.push(...faultsOfTranscript(transcript, expected).map((fault) => `${id} (${outcome}): ${fault}`));
      }
    }
    return all;
  }

  /** Notifications on the GET stream, with pauses, some of them said while nobody listens. */
  async function followGet(
    session: CountingSession,
    name: string,
    random: Random,
    tally: Tally,
  ): Promise<readonly Listened[]> {
    const pad = 25;
    const transcript: Listened[] = [];
    let after: string | undefined;
    let said = 0;
    const proxy = await startNetProxy(target.port, {
      plan: (index) => randomPlan(random, index > 0 ? 1 : beyondPriming),
    });
    while (tally.resumes < wantedResumes) {
      const to = said + random.integer(1, 200);
      const telling = () =>
        session.tell(said + 1, to, { pad, burst: random.integer(1, 40), gapMs: random.integer(0, 8) });
      // The server speaks while the client listens, or while it is away.
      const early = random.chance(0.5) ? telling() : undefined;
      const following = follow(proxy.urlOf(target.url), {
        headers: headersOf(session),
        after,
        isLast: isTold(to),
        stayAway: () => randomAbsence(random),
        leavesAtLast: true,
      });
      await (early ?? telling());
      const followed = await following;
      if (followed.outcome !== 'done') tally.faults.push(`${name}: ${followed.outcome}`);
      // The client begins again where it is, but only from an id: without one it could not say what it has.
      after = followed.lastEventId;
      said = to;
      transcript.push(...followed.transcript);
      tally.resumes += followed.transcript.filter(
        (listened) => listened.after !== undefined && listened.status !== 0,
      ).length;
    }
    await proxy.close();
    tally.told += said;
    const faults = faultsOfTranscript(transcript, { texts: toldTexts(said, pad), primes: true, isWhole: true });
    tally.faults.push(...faults.map((fault) => `${name}: ${fault}`));
    return transcript;
  }

  test.each(rounds)(
    `${cuts.name}, in ${wantedResumes} resumes under load (round %i)`,
    async () => {
      process.stdout.write(`random cuts: RESUME_SEED=${seed}\n`);
      const startedAt = performance.now();
      const tally: Tally = { resumes: 0, cutTooEarly: 0, answered: 0, answeredOnResume: 0, told: 0, faults: [] };
      const openAll = (count: number) => Promise.all(Array.from({ length: count }, () => openCounting(target.url)));
      const [callers, listeners] = [await openAll(withCalls), await openAll(withGet)];

      const transcripts = await Promise.all([
        ...callers.map(async (session, s) => {
          const sources = Array.from({ length: callsAtOnce }, () => root.fork());
          const following = sources.map((source, c) => followCalls(session, `${s}-${c}`, source, tally));
          const calls = (await Promise.all(following)).flat();
          const shared = sharedIds(calls.map(({ transcript }) => transcript));
          tally.faults.push(...shared.map((id) => `session ${s}: ${id} is in two streams`));
          return transcriptOf(`${s}`, session, calls);
        }),
        ...listeners.map(async (session, s) => {
          const transcript = await followGet(session, `get-${s}`, root.fork(), tally);
          return transcriptOf(`get-${s}`, session, [{ id: undefined, transcript, isGivenUp: false }]);
        }),
      ]);

      const { faults, ...counts } = tally;
      const seconds = Math.round((performance.now() - startedAt) / 100) / 10;
      process.stdout.write(`random cuts: ${JSON.stringify({ seconds, ...counts, faults: faults.length })}\n`);
      expect(faults, `RESUME_SEED=${seed}`).toEqual([]);
      expect(tally.resumes).toBeGreaterThanOrEqual(wantedResumes);
      expect(tally.answered).toBeGreaterThan(tally.cutTooEarly);
      expect(target.logs().filter(({ msg }) => msg === 'session failed')).toEqual([]);
      await cuts.check?.(target, transcripts);
      await Promise.all([...callers, ...listeners].map((session) => session.delete()));
    },
    wantedResumes > 1_000 ? 1_200_000 : 120_000,
  );
}

/** The connections of a call, or those to the GET stream, which has no id. */
interface FollowedCall {
  readonly id: string | undefined;
  readonly transcript: readonly Listened[];
  /** Nothing told its client that it was accepted. */
  readonly isGivenUp: boolean;
}

/** What one client saw, as `violationsOf` wants it. */
function transcriptOf(name: string, { id: sessionId }: CountingSession, followed: readonly FollowedCall[]) {
  const calls = followed.flatMap(({ id, isGivenUp }) =>
    id === undefined ? [] : [{ id, mark: id, isOnce: true, isGivenUp, startedAt: 0, endedAt: undefined }],
  );
  const connections = followed.flatMap(({ id: call, transcript }) => transcript.map((one) => ({ ...one, call })));
  return { name, sessionId, calls, connections, isEnded: false };
}

const isTold = (n: number) => {
  const text = new RegExp(`"n":${n},`);
  return ({ data }: SseEvent): boolean => data !== undefined && text.test(data);
};
