import { afterAll, beforeAll, expect } from 'vitest';
import { type Cluster, type ClusterOptions, startCluster } from '../support/cluster.ts';
import { environmentNumber } from '../support/environment-number.ts';
import { createJournal, type Journal } from '../support/journal.ts';
import { type JournaledClient, type OpenCall, openJournaled } from '../support/journaled-client.ts';
import { loadMs } from '../support/wait-for.ts';
import { faultArgs, mayTakeOver, noticedMs, urlOf } from './patience.ts';

/** How many clients go through each scenario; `REFUSAL_RUNS=200` is the full size. */
export const runs = environmentNumber('REFUSAL_RUNS', 12);

/** So many go through it at once. */
const runsAtOnce = Math.min(20, runs);

/** The rounds of a scenario, and how many clients each has. */
export const rounds: readonly [round: number, clients: number][] = Array.from(
  { length: Math.ceil(runs / runsAtOnce) },
  (_, round) => [round, Math.min(runsAtOnce, runs - round * runsAtOnce)],
);

/** A call ends within this time, and within the time that it takes by itself (P3). */
export const limitMs = noticedMs + loadMs;

/** A cluster whose servers keep a journal, in the hooks of a suite. */
export function useJournaledCluster(options: Omit<ClusterOptions, 'command'> = {}) {
  let cluster: Cluster | undefined;
  let journal: Journal | undefined;
  let opened = 0;
  beforeAll(async () => {
    journal = await createJournal();
    cluster = await startCluster({
      args: [...faultArgs, '--timeouts.drain', '0'],
      ...options,
      command: journal.command,
    });
    await mayTakeOver(cluster);
  }, 60_000);
  afterAll(async () => {
    await cluster?.stop();
    await journal?.remove();
  });
  return {
    get cluster(): Cluster {
      return cluster as Cluster;
    },
    get journal(): Journal {
      return journal as Journal;
    },
    /** Opens sessions at an instance, which owns them. */
    openAt: (instance: number, count: number): Promise<JournaledClient[]> =>
      Promise.all(
        Array.from({ length: count }, () => openJournaled(urlOf(cluster as Cluster, instance), `r${opened++}`)),
      ),
    /** Ends sessions by way of an instance. */
    end: (clients: readonly JournaledClient[], url: string) =>
      Promise.all(clients.map(({ session }) => session.at(url).delete())),
    /** What is wrong with the answers that these clients got. */
    violations: (clients: readonly JournaledClient[]) =>
      (journal as Journal).violations(clients.map(({ transcript }) => transcript)),
  };
}

/** How each of these calls ended: `answered`, `broken`, `none`, or the reason of an error. */
export async function endsOf(calls: readonly OpenCall[]): Promise<readonly string[]> {
  const outcomes = await Promise.all(calls.map(({ outcome }) => outcome));
  return outcomes.map((outcome) => (outcome.outcome === 'error' ? outcome.reason : outcome.outcome));
}

/** Fails if there is an end that is none of these. */
export const expectOnly = (allowed: readonly string[], ends: readonly string[]): void =>
  expect([...new Set(ends)].filter((end) => !allowed.includes(end))).toEqual([]);
