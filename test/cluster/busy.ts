import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createRandom, seedOfRun } from '../resume/random.ts';
import { type Cluster, type ClusterOptions, startCluster } from '../support/cluster.ts';
import { open } from '../support/http-client.ts';
import { type Violation, violationsOf } from '../support/log-checker.ts';
import type { LogAllowances } from '../support/log-faults.ts';
import { readLogs } from '../support/session-logs.ts';
import { executionsIn, startTraffic, type Traffic, type TrafficOptions, trafficServer } from '../support/traffic.ts';
import type { SessionTranscript } from '../support/transcript.ts';
import { waitFor } from '../support/wait-for.ts';
import { faultArgs, mayTakeOver } from './patience.ts';

/** `FAULT_SIZE=full`: as many sessions and as long outages as docs/hardening.md has; half an hour is not enough for all. */
export const isFullSize = process.env['FAULT_SIZE'] === 'full';
export const busySessions = isFullSize ? 50 : 16;

/** A cluster whose sessions are all at work. */
export interface Busy {
  readonly cluster: Cluster;
  readonly traffic: Traffic;
  readonly seed: number;
  /** Resolves when so many more calls have ended, in each session one at least. */
  more(calls?: number): Promise<void>;
  /** Resolves when every session is served. */
  allGoOn(): Promise<void>;
  /** What is wrong with what clients saw and servers ran. It does not look at the logs in Redis. */
  violations(transcripts: readonly SessionTranscript[]): Promise<readonly Violation[]>;
  /** Ends the traffic; resolves with what was seen and what is wrong with it. */
  stop(
    allowances?: LogAllowances,
  ): Promise<{ transcripts: readonly SessionTranscript[]; violations: readonly Violation[] }>;
}

/** Starts a cluster and lets its sessions work; stopped with the test. */
export async function startBusy(
  { args = [], ...options }: ClusterOptions & { readonly args?: readonly string[] } = {},
  how: Partial<TrafficOptions> = {},
): Promise<Busy> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-busy-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const notes = join(folder, 'notes');
  const cluster = await startCluster({ ...options, command: trafficServer(notes), args: [...faultArgs, ...args] });
  await mayTakeOver(cluster);
  const seed = seedOfRun();
  const random = createRandom(seed);
  const traffic = await startTraffic(cluster.url, {
    ...{ random, sessions: busySessions, callsAtOnce: 2, callDeadlineMs: 40_000 },
    ...how,
  });
  const endedOf = ({ calls }: SessionTranscript): number => calls.filter(({ endedAt }) => endedAt !== undefined).length;
  return {
    cluster,
    traffic,
    seed,
    async more(calls = 2 * busySessions) {
      const before = traffic.transcripts.map(endedOf);
      const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
      const isEnough = (): boolean => {
        const now = traffic.transcripts.map(endedOf);
        return sum(now) >= sum(before) + calls && now.every((count, index) => count > (before[index] as number));
      };
      await waitFor(isEnough, { what: `${calls} more calls`, deadlineMs: 45_000, intervalMs: 20 });
    },
    async allGoOn() {
      const isServed = async (sessionId: string) => (await headOf(cluster.url, sessionId)).status === 200;
      const what = 'a session to go on';
      await Promise.all(traffic.transcripts.map(({ sessionId }) => waitFor(() => isServed(sessionId), { what })));
    },
    violations: async (transcripts) => violationsOf({ transcripts, executions: await executionsIn(notes) }),
    async stop(allowances = {}) {
      const transcripts = await traffic.stop();
      const [logs, executions] = [await readLogs(cluster.redis), await executionsIn(notes)];
      return { transcripts, violations: violationsOf({ transcripts, logs, executions, ...allowances }).slice(0, 10) };
    },
  };
}

/** The statuses that clients saw. */
export const statusesIn = (transcripts: readonly SessionTranscript[]): ReadonlySet<number> =>
  new Set(transcripts.flatMap(({ connections }) => connections.map(({ status }) => status)));

/** The head of an answer to a ping, or to a GET, in a session. */
export async function headOf(url: string, sessionId: string, method: 'POST' | 'GET' = 'POST') {
  const exchange = await open(url, {
    method,
    headers: {
      'Content-Type': 'application/json',
      Accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
      'Mcp-Session-Id': sessionId,
    },
    ...(method === 'POST' && { body: { jsonrpc: '2.0', id: `ping-${Math.random()}`, method: 'ping' } }),
  });
  exchange.drop();
  return { status: exchange.status, retryAfter: exchange.headers['retry-after'] };
}
