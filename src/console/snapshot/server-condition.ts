import { isFailing, type RecentCalls } from '../record/calls/call-rates.ts';
import type { FailingTool } from '../record/calls/failing-tools.ts';
import type { Incidents } from '../record/incidents/server-incidents.ts';

/**
 * The condition of a server for an operator, worst first: `down` does not start or answer, `degraded` works with
 * trouble, `up` works, `unused` has not been used.
 */
export interface ServerCondition {
  readonly state: 'down' | 'degraded' | 'up' | 'unused';
  /** Why the server is degraded: one sentence for each reason. */
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
}

/** Determines the condition of a server. */
export function findCondition(
  health: 'up' | 'down' | 'unknown',
  recent: Pick<RecentCalls, 'calls' | 'failures'>,
  { exits, lastExit, noise, since: incidentSince, failingSince, failingTool }: ServerTrouble,
): ServerCondition {
  const { calls, failures } = recent;
  const times = [incidentSince, isFailing(recent) ? failingSince : undefined].filter((at) => at !== undefined);
  const since = times.length === 0 ? undefined : Math.min(...times);
  if (health === 'down') return { state: 'down', reasons: [], since };
  const reasons = [
    ...(isFailing(recent)
      ? [
          `${failures} of ${calls} calls failed in the last 2 minutes (${Math.round((failures / calls) * 100)} %)${failingTool ? `, most of ${failingTool.name}` : ''}.`,
        ]
      : []),
    ...(exits > 0
      ? [`Processes or connections were lost in the last 5 minutes: ${exits}. The last: ${lastExit ?? 'unknown.'}`]
      : []),
    ...(noise > 0 ? [`Lines on stdout that are not MCP messages: ${noise}.`] : []),
  ];
  if (reasons.length > 0) return { state: 'degraded', reasons, since };
  return { state: health === 'up' || calls > 0 ? 'up' : 'unused', reasons };
}

const order: readonly ServerCondition['state'][] = ['down', 'degraded', 'up', 'unused'];

/** Sorts the servers in trouble first. Servers in the same state keep their order. */
export const byTrouble = <T extends { readonly condition: ServerCondition }>(servers: readonly T[]): readonly T[] =>
  [...servers].sort((a, b) => order.indexOf(a.condition.state) - order.indexOf(b.condition.state));
