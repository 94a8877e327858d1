import type { Check } from '../conformance/suite.ts';
import type { Outcome } from './judge.ts';

/** The outcome of a scenario of the conformance suite. A warning counts as a failure of its own name. */
export const outcomeOf = (checks: readonly Check[]): Outcome => ({
  passed: checks.filter(({ status }) => status === 'SUCCESS').length,
  passedNames: checks.filter(({ status }) => status === 'SUCCESS').map(({ id }) => id),
  failed: checks.flatMap(({ id, status }) => {
    if (status === 'FAILURE') return [id];
    return status === 'WARNING' ? [`${id} (warning)`] : [];
  }),
});
