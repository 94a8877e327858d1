import type { ServerCondition } from './server-condition.ts';
import { rankOf } from './steady-conditions.ts';

/** The condition of a server of a view. */
export interface MemberCondition {
  readonly name: string;
  readonly condition: ServerCondition;
  /** Why the server is down, if it is. */
  readonly why: string | undefined;
}

/**
 * Determines the condition of a view: the worst of its own and those of its servers, whose reasons name the server. A
 * view answers without a server that is down, so it is down only if all of them are.
 */
export function conditionOfView(own: ServerCondition, members: readonly MemberCondition[]): ServerCondition {
  const down = members.filter(({ condition }) => condition.state === 'down');
  if (down.length > 0) {
    const times = down.flatMap(({ condition: { since } }) => since ?? []);
    return {
      state: down.length === members.length ? 'down' : 'degraded',
      reasons: down.map(({ name, why }) => `${name} is down${why === undefined ? '.' : `: ${why}`}`),
      since: times.length === 0 ? undefined : Math.min(...times),
    };
  }
  const named = members.map(({ name, condition }) => ({
    ...condition,
    reasons: condition.reasons.map((each) => `${name}: ${each}`),
  }));
  return [own, ...named].reduce((worst, each) => (rankOf(each) < rankOf(worst) ? each : worst));
}
