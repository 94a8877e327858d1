import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRandom, type Random, seedOfRun } from '../resume/random.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { environmentNumber } from '../support/environment-number.ts';
import { outcomesOf, violationsOf } from '../support/log-checker.ts';
import { readLogs } from '../support/session-logs.ts';
import { countOutcomes, executionsIn, startTraffic, type Traffic, trafficServer } from '../support/traffic.ts';
import type { SessionTranscript } from '../support/transcript.ts';
import { loadMs, waitFor } from '../support/wait-for.ts';
import { faultArgs, mayTakeOver, noticedMs } from './patience.ts';

/** How many instances are killed in all; `KILL_RUNS=200` is the full size, which takes half an hour. */
const kills = environmentNumber('KILL_RUNS', 10);
const sessions = environmentNumber('KILL_SESSIONS', kills > 50 ? 50 : 20);
/** What is recorded of so many is checked, and forgotten, before the next ones. */
const killsPerRound = 2;
const rounds = Math.ceil(kills / killsPerRound);
/** What hangs is found soon; far beyond what a kill may cost. */
const callDeadlineMs = 25_000;
/** The longest call of the traffic runs so long by itself. */
const longestCallMs = 1_000;

describe(`[F01] [F03] kill -9 of any instance, ${kills} times, with ${sessions} sessions at work`, () => {
  let cluster: Cluster;
  let folder: string;
  const seed = seedOfRun();
  const random = createRandom(seed);
  const totals = { calls: 0, events: 0, longestMs: 0, outcomes: {} as Record<string, number> };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gangway-kills-'));
    cluster = await startCluster({
      command: trafficServer(join(folder, 'notes')),
      args: [...faultArgs, '--timeouts.drain', '0'],
    });
    await mayTakeOver(cluster);
  });
  afterAll(async () => {
    await cluster?.stop();
    if (folder !== undefined) await rm(folder, { recursive: true });
    process.stdout.write(`kill-random, RESUME_SEED=${seed}: ${JSON.stringify(totals)}\n`);
  });

  test.each(Array.from({ length: rounds }, (_, round) => round))(
    '[P3] [P4] [P5] [P6] round %i: nothing lost, doubled or reordered, each call answered once or told why not',
    async (round) => {
      // Every round has sessions of its own, with the names of the ones before.
      await writeFile(join(folder, 'notes'), '');
      const transcripts = await killDuring(
        cluster,
        random.fork(),
        Math.min(killsPerRound, kills - round * killsPerRound),
      );
      const executions = await executionsIn(join(folder, 'notes'));
      const where = `RESUME_SEED=${seed}, round ${round}`;
      expect(
        violationsOf({ transcripts, logs: await readLogs(cluster.redis), executions }).slice(0, 10),
        where,
      ).toEqual([]);
      note(transcripts);
      const bad = ['none', 'store_unavailable', 'unknown_session', 'internal', 'duplicate_id'];
      expect(
        Object.keys(countOutcomes(transcripts)).filter((outcome) => bad.includes(outcome)),
        where,
      ).toEqual([]);
      expect(longestOf(transcripts), where).toBeLessThan(killsPerRound * noticedMs + longestCallMs + loadMs);
      expect(statusesOf(transcripts), where).not.toContain(404);
    },
    120_000,
  );

  test('leaves no process of a killed instance behind', async () => {
    await cluster.allChildrenEnded();
    expect(totals.outcomes['answered']).toBeGreaterThan(0);
  });

  function note(transcripts: readonly SessionTranscript[]): void {
    for (const [outcome, count] of Object.entries(countOutcomes(transcripts))) {
      totals.calls += count;
      totals.outcomes[outcome] = (totals.outcomes[outcome] ?? 0) + count;
    }
    for (const { connections } of transcripts) for (const { events } of connections) totals.events += events.length;
    totals.longestMs = Math.max(totals.longestMs, Math.round(longestOf(transcripts)));
  }
});

/** Lets sessions work while instances are killed and started again. */
async function killDuring(cluster: Cluster, random: Random, times: number): Promise<readonly SessionTranscript[]> {
  const traffic = await startTraffic(cluster.url, { random: random.fork(), sessions, callsAtOnce: 2, callDeadlineMs });
  try {
    for (let kill = 0; kill < times; kill++) {
      await moreCalls(traffic, random.integer(sessions, 4 * sessions));
      const victim = random.integer(0, cluster.instances.length - 1);
      await cluster.kill(victim);
      await cluster.restart(victim);
    }
    await moreCalls(traffic, sessions);
  } finally {
    // A round that fails must not load the next ones.
    await traffic.stop();
    await traffic.endSessions();
  }
  return traffic.transcripts;
}

/** Resolves when so many more calls have ended. */
async function moreCalls({ transcripts }: Traffic, count: number): Promise<void> {
  const ended = (): number =>
    transcripts.reduce((sum, { calls }) => sum + calls.filter(({ endedAt }) => endedAt !== undefined).length, 0);
  const enough = ended() + count;
  await waitFor(() => ended() >= enough, { what: `${count} more calls to end`, deadlineMs: 60_000, intervalMs: 20 });
}

/** How long the call took that took longest, of those that were answered. */
function longestOf(transcripts: readonly SessionTranscript[]): number {
  const times = transcripts.flatMap((transcript) => {
    const outcomes = outcomesOf(transcript);
    return transcript.calls
      .filter(({ id }) => outcomes.get(id)?.outcome !== 'broken')
      .map(({ startedAt, endedAt = Number.POSITIVE_INFINITY }) => endedAt - startedAt);
  });
  return Math.max(...times);
}

const statusesOf = (transcripts: readonly SessionTranscript[]): readonly number[] => [
  ...new Set(transcripts.flatMap(({ connections }) => connections.map(({ status }) => status))),
];
