import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createRandom, type Random } from '../resume/random.ts';
import { outcomesOf, violationsOf } from '../support/log-checker.ts';
import type { LogAllowances } from '../support/log-faults.ts';
import { lostReports } from '../support/lost-reports.ts';
import { lostTicks } from '../support/lost-ticks.ts';
import { type Plan, startNetProxy } from '../support/net-proxy.ts';
import { logNameOf, readLogs } from '../support/session-logs.ts';
import { executionsIn, startTraffic, type Traffic, type TrafficOptions } from '../support/traffic.ts';
import type { SessionTranscript } from '../support/transcript.ts';
import { withDeadline } from '../support/wait-for.ts';
import type { PlannedFault } from './faults.ts';
import type { Ledger } from './ledger.ts';
import type { Stage } from './stage.ts';

export interface RoundTools {
  readonly stage: Stage;
  readonly ledger: Ledger;
  readonly random: Random;
  /** How many calls in a second all traffic of a round makes, about. */
  readonly callsPerSecond: number;
  /** How many sessions are recorded, a multiple of twelve. */
  readonly clients: number;
  readonly faults: readonly PlannedFault[];
  /** By `performance.now()`: no new fault after it. */
  readonly until: number;
}

/** What one round came to. */
export interface Round {
  readonly calls: number;
  readonly events: number;
  readonly connections: number;
  readonly resumes: number;
}

/** What hangs is found; far beyond what any fault may cost. */
const callDeadlineMs = 60_000;
/** The longest call of the traffic by itself. */
const longestCallMs = 1_000;
/** What twelve of the recorded sessions talk to. */
const tracks = { stdio: 4, own: 2, remote: 3, old: 3 } as const;
const versions = ['2025-11-25', '2025-11-25', '2025-06-18', '2025-03-26'] as const;

/**
 * Opens sessions on three kinds of servers, lets their clients call, listen, lose connections at random bytes and resume,
 * brings faults about meanwhile, and then checks every transcript against the logs and what servers ran.
 */
export async function runRound(number: number, tools: RoundTools): Promise<Round> {
  const { stage, ledger, random, callsPerSecond, clients, faults, until } = tools;
  const cuts = createRandom(random.integer(0, 2 ** 31));
  let isCutting = false;
  const proxy = await startNetProxy(stage.cluster.balancer.port, {
    plan: () => (isCutting ? randomPlan(cuts) : {}),
    isRecorded: false,
  });
  const beganAt = performance.now();
  const callsAtOnce = 2;
  const pauseMs = Math.max(0, (clients * callsAtOnce * 1_000) / callsPerSecond - 300);
  const version = versions[number % versions.length] as string;
  const opened = await Promise.allSettled(
    Object.entries(tracks).map(([server, count]) =>
      startPatiently(proxy.urlOf(stage.urlOf(server)), {
        ...{ random: random.fork(), sessions: (count * clients) / 12, callsAtOnce, callDeadlineMs, version, pauseMs },
        prefix: `r${number}${server}`,
      }),
    ),
  );
  const traffics = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  for (const one of opened) if (one.status === 'rejected') ledger.fail(`round ${number} could not open: ${one.reason}`);
  isCutting = true;
  for (const fault of faults) {
    if (performance.now() >= until) break;
    await delay(fault.beforeMs);
    await fault
      .run({ stage, ledger, cutClients: proxy.cutAll })
      .catch((error: Error) => ledger.fail(`${fault.what} could not be brought about: ${error.stack}`));
    await delay(fault.afterMs);
    ledger.judge();
  }
  const all = await Promise.all(traffics.map((traffic) => stopWithin(traffic, ledger)));
  isCutting = false;
  const transcripts = all.flat();
  const isDataLost = ledger.mayHaveLostData(beganAt);
  const isOwnerLost = ledger.mayHaveLostBoth(beganAt);
  await check(number, tools, transcripts, { beganAt, isDataLost, isOwnerLost });
  for (const traffic of traffics) {
    await withDeadline(traffic.endSessions(), { deadlineMs: 30_000, what: 'sessions to end' }).catch((error: Error) =>
      ledger.fail(`round ${number}: ${error.message}`),
    );
  }
  await proxy.close();
  await writeFile(stage.notes, '');
  const connections = transcripts.flatMap((transcript) => transcript.connections);
  return {
    calls: transcripts.reduce((sum, { calls }) => sum + calls.length, 0),
    events: connections.reduce((sum, { events }) => sum + events.length, 0),
    connections: connections.length,
    resumes: connections.filter(({ after }) => after !== undefined).length,
  };
}

/** Opens the sessions, again if an earlier fault, or a busy machine, is in the way. */
async function startPatiently(url: string, options: TrafficOptions, attempts = 10): Promise<Traffic> {
  try {
    return await startTraffic(url, options);
  } catch (error) {
    if (attempts === 1) throw error;
    await delay(1_000);
    return startPatiently(url, options, attempts - 1);
  }
}

async function stopWithin(traffic: Traffic, ledger: Ledger): Promise<readonly SessionTranscript[]> {
  return withDeadline(traffic.stop(), { deadlineMs: 2 * callDeadlineMs, what: 'traffic to stop' }).catch(
    (error: Error) => {
      ledger.fail(error.message);
      return traffic.transcripts;
    },
  );
}

async function check(
  number: number,
  { stage, ledger }: RoundTools,
  transcripts: readonly SessionTranscript[],
  { beganAt, ...allowances }: LogAllowances & { readonly beganAt: number },
): Promise<void> {
  const [logs, executions] = [await readLogs(stage.cluster.redis), await executionsIn(stage.notes)];
  const own = executions.filter((mark) => mark.startsWith(`mark=r${number}`));
  const violations =
    transcripts.length === 0
      ? []
      : [
          ...violationsOf({ transcripts, logs, executions: own, ...allowances }),
          ...transcripts.flatMap((transcript) => lostTicks(transcript, logs)),
          ...transcripts.flatMap((transcript) =>
            lostReports(transcript, {
              hasOwnProcess: trackOf(transcript) !== 'stdio',
              log: logs.get(logNameOf(transcript.sessionId)),
            }),
          ),
        ];
  for (const { kind, what } of violations) ledger.fail(`round ${number}: ${kind}: ${what}`);
  for (const transcript of transcripts) {
    const server = trackOf(transcript);
    const outcomes = outcomesOf(transcript);
    for (const { id, startedAt, endedAt = performance.now() } of transcript.calls) {
      const of = outcomes.get(id);
      const outcome = of === undefined ? 'none' : of.outcome === 'error' ? of.reason : of.outcome;
      ledger.note({
        ...{ kind: `legacy traffic: ${server}`, startedAt, endedAt, outcome },
        ...{ ownMs: longestCallMs, isDropping: true },
      });
    }
    const statuses = new Set(transcript.connections.map(({ status }) => status));
    if (statuses.has(404) && !ledger.mayHaveEnded(beganAt))
      ledger.fail(`round ${number}: 404 for ${transcript.name}, which lives`);
  }
  ledger.judge(true);
  if (violations.length === 0) return;
  // For whoever looks for the cause.
  const folder = join(stage.folder, 'found');
  await mkdir(folder, { recursive: true });
  const told = transcripts.filter(({ name }) => violations.some(({ what }) => what.includes(name)));
  const evidence = { violations, faults: ledger.faults.slice(-10), own, told, logs: [...logs] };
  await writeFile(join(folder, `round-${number}.json`), JSON.stringify(evidence, undefined, 1));
}

/** The server that the name of a recorded session names. */
const trackOf = ({ name }: SessionTranscript): string | undefined => /^r\d+([a-z]+)/.exec(name)?.[1];

/** A cut at a random byte, seldom; some connections are slow. */
function randomPlan(random: Random): Plan {
  const cut = random.chance(0.2) ? { cutAfterBytes: random.integer(1, random.chance(0.6) ? 1_500 : 8_000) } : {};
  const slow = random.chance(0.05) ? { latencyMs: random.integer(1, 30) } : {};
  const narrow = random.chance(0.03) ? { bytesPerSecond: 20_000 } : {};
  return { toClient: { ...cut, ...slow, ...narrow }, cutBy: random.chance(0.7) ? 'end' : 'reset' };
}
