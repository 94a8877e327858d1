import { expect, it } from 'vitest';
import type { Budget } from './budget.ts';
import { keyOf } from './key.ts';
import { isOver, transitions } from './model.ts';
import type { Rules } from './rules.ts';
import { everywhere, initialState, type State } from './state.ts';

/** How many states of a configuration share a key with another, and which of those do not go on to the same keys. */
function compare(first: State, request: Rules['request']): { shared: number; different: string[] } {
  const rules: Rules = { request, events: 2, isHarmless: false, isPrompt: true, without: new Set() };
  const seen = new Set([JSON.stringify(first)]);
  const nextKeys = new Map<string, string>();
  const queue = [first];
  const result = { shared: 0, different: [] as string[] };
  for (const state of queue) {
    if (isOver(state)) continue;
    const key = keyOf(state);
    const keys = new Set<string>();
    for (const { next, isFault } of transitions(state, rules)) {
      const nextKey = keyOf(next);
      if (nextKey !== key) keys.add(`${nextKey} ${isFault}`);
      const whole = JSON.stringify(next);
      if (seen.has(whole)) continue;
      seen.add(whole);
      queue.push(next);
    }
    const all = [...keys].sort().join('\n');
    const known = nextKeys.get(key);
    if (known !== undefined) result.shared += 1;
    if (known !== undefined && known !== all) result.different.push(key);
    nextKeys.set(key, all);
  }
  return result;
}

const cases: readonly [Rules['request'], number, Partial<Budget>, boolean][] = [
  ['call', 1, { lapse: 1, crash: 1, linkBreak: 1 }, false],
  ['call', 1, { restartEmpty: 1 }, false],
  ['stream', 1, { flush: 1 }, false],
  ['stream', 1, { drop: 1, lapse: 1 }, false],
  ['any', everywhere, { failover: 1, crash: 1 }, true],
];

it.each(cases)('takes states for one only if they go on alike: %s at %i, %o', { timeout: 60_000 }, (...given) => {
  const [request, at, faults, hasReplica] = given;
  const { shared, different } = compare(initialState(at, faults, hasReplica), request);
  expect(different).toEqual([]);
  expect(shared).toBeGreaterThan(0);
});
