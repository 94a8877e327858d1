import type { RecentCalls } from '../record/call-rates.ts';
import type { Incidents } from '../record/server-incidents.ts';

/**
 * The condition of a server for an operator, worst first: `down` does not start or answer, `degraded` works with
 * trouble, `up` works, `unused` has not been used.
 */
export interface ServerCondition {
  readonly state: 'down' | 'degraded' | 'up' | 'unused';
  /** Why the server is degraded: one sentence for each reason. */
  readonly reasons: readonly string[];
}

/** A server is degraded from this share of failed calls on, if there are enough of them. */
const degradedShare = 0.1;
const minFailures = 3;

/** True if a person should look at the failed calls. */
export const isFailing = ({ calls, failures }: Pick<RecentCalls, 'calls' | 'failures'>): boolean =>
  failures >= minFailures && failures >= calls * degradedShare;

/** Determines the condition of a server. */
export function findCondition(
  health: 'up' | 'down' | 'unknown',
  recent: Pick<RecentCalls, 'calls' | 'failures'>,
  { exits, noise }: Incidents,
): ServerCondition {
  if (health === 'down') return { state: 'down', reasons: [] };
  const { calls, failures } = recent;
  const reasons = [
    ...(isFailing(recent)
      ? [`${failures} of ${calls} calls failed in the last 2 minutes (${Math.round((failures / calls) * 100)} %).`]
      : []),
    ...(exits > 0 ? [`Processes or connections were lost in the last 5 minutes: ${exits}.`] : []),
    ...(noise > 0 ? [`Lines on stdout that are not MCP messages: ${noise}.`] : []),
  ];
  if (reasons.length > 0) return { state: 'degraded', reasons };
  return { state: health === 'up' || calls > 0 ? 'up' : 'unused', reasons };
}

const order: readonly ServerCondition['state'][] = ['down', 'degraded', 'up', 'unused'];

/** Sorts the servers in trouble first. Servers in the same state keep their order. */
export const byTrouble = <T extends { readonly condition: ServerCondition }>(servers: readonly T[]): readonly T[] =>
  [...servers].sort((a, b) => order.indexOf(a.condition.state) - order.indexOf(b.condition.state));
