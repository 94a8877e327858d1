import { isFailing, type RecentCalls } from '../record/calls/call-rates.ts';
import type { FailingTool } from '../record/calls/tool-counts.ts';
import type { Incidents } from '../record/incidents/server-incidents.ts';

/**
 * The condition of a server for an operator, worst first: `down` does not start or answer, `degraded` works with
 * trouble, `slow` works and takes long, `up` works, `unused` has not been used.
 */
export interface ServerCondition {
  readonly state: 'down' | 'degraded' | 'slow' | 'up' | 'unused';
  /** Why the server is degraded or slow: one sentence for each reason. */
  readonly reasons: readonly string[];
  /** When the trouble began, in milliseconds since 1970; undefined without trouble, or if nobody knows. */
  readonly since?: number | undefined;
}

/** What is known about the trouble of a server. */
export interface ServerTrouble extends Incidents {
  /** Since when its calls have been failing, in milliseconds since 1970. */
  readonly failingSince: number | undefined;
  /** The tool that fails most; undefined if no call with a name fails. */
  readonly failingTool?: FailingTool | undefined;
  /** When the start or probe failed that took the server down, in milliseconds since 1970. */
  readonly downAt?: number | undefined;
  /** True if a process or connection of the server has been open for some time: not every start failed. */
  readonly isRunning?: boolean;
  /** The median response time (p95) of the other servers, in milliseconds; undefined without other servers in use. */
  readonly othersP95Ms?: number | undefined;
}

/** A server is slow if its response time has both of these limits. */
const slowMs = 1_000;
const slowFactor = 10;

/** So many calls say that a server is slow. */
const minSlowCalls = 3;

const minuteMs = 60_000;

/** Determines the condition of a server. */
export function findCondition(
  health: 'up' | 'down' | 'unknown',
  recent: Pick<RecentCalls, 'calls' | 'failures'> & Partial<Pick<RecentCalls, 'p95Ms'>>,
  trouble: ServerTrouble,
): ServerCondition {
  const { noise, since: incidentSince, failingSince, failingTool, isRunning = false, downAt } = trouble;
  const { calls, failures } = recent;
  const times = [incidentSince, isFailing(recent) ? failingSince : undefined].filter((at) => at !== undefined);
  const since = times.length === 0 ? undefined : Math.min(...times);
  if (health === 'down' && !isRunning) return { state: 'down', reasons: [], since: since ?? downAt };
  const reasons = [
    ...describeExits(trouble),
    ...(isFailing(recent)
      ? [
          `${failures} of ${calls} calls failed in the last 2 min (${Math.round((failures / calls) * 100)} %)${failingTool ? `, most of ${describeTool(failingTool)}` : ''}.`,
        ]
      : []),
    ...(noise > 0 ? [`Lines on stdout that are not MCP messages: ${noise}.`] : []),
  ];
  if (reasons.length > 0) return { state: 'degraded', reasons, since };
  if (isSlow(recent, trouble)) return { state: 'slow', reasons: [describeSlowness(trouble)] };
  // A server that starts slowly, or never answers, looks like one that works until its start takes too long.
  if (health === 'unknown' && calls > 0 && recent.p95Ms === null)
    return { state: 'up', reasons: ['No call has been answered yet.'] };
  return { state: health !== 'unknown' || calls > 0 ? 'up' : 'unused', reasons };
}

/** Names that the server has not listed count together as `other`. */
const describeTool = ({ name }: FailingTool): string => (name === 'other' ? 'unlisted tools' : name);

/** Says how often the server was lost, and why the last time. */
function describeExits({ exits, exitSpanMs = 0, lastExit }: ServerTrouble): string[] {
  if (exits === 0) return [];
  const span = `${Math.max(1, Math.ceil(exitSpanMs / minuteMs))} min`;
  const times = exits === 1 ? 'Lost once' : `Restarted ${exits} times`;
  return [`${times} in ${span}. ${lastExit ?? ''}`.trim()];
}

/** True if the server takes long, and much longer than the others: then it is not the gateway or the machine. */
function isSlow(
  { calls, p95Ms = null }: Parameters<typeof findCondition>[1],
  { othersP95Ms = 0 }: Pick<ServerTrouble, 'othersP95Ms'>,
): boolean {
  return calls >= minSlowCalls && p95Ms !== null && p95Ms >= slowMs && p95Ms >= slowFactor * othersP95Ms;
}

const describeSlowness = ({ othersP95Ms }: Pick<ServerTrouble, 'othersP95Ms'>): string =>
  othersP95Ms === undefined
    ? 'Response time over 1 s in the last 2 min.'
    : `Response time over 1 s in the last 2 min, and over ${slowFactor} times that of the other servers.`;

/** Returns the median of the response times of the other servers that were used lately. */
export function medianOfOthers(times: readonly (number | null)[], own: number): number | undefined {
  const others = times.filter((ms, index): ms is number => index !== own && ms !== null).sort((a, b) => a - b);
  return others[Math.floor(others.length / 2)];
}
