import { keyOf } from './key.ts';
import { faultIn, isOver, isSettled, transitions } from './model.ts';
import type { Rules } from './rules.ts';
import type { State } from './state.ts';

/** What a search found. */
export interface Exploration {
  readonly states: number;
  readonly transitions: number;
  /** What is wrong, and the shortest way there; undefined if nothing is. */
  readonly violation: { readonly fault: string; readonly trace: readonly string[] } | undefined;
}

/** Two multiplicative hashes of 32 and 21 bits as one integer: two of a million states meet once in ten thousand runs. */
function hashOf(text: string): number {
  let [a, b] = [0x811c9dc5, 0x9747b28c];
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x5bd1e995);
    b ^= b >>> 15;
  }
  a ^= a >>> 13;
  return (a >>> 0) * 0x200000 + ((b ^ (b >>> 11)) & 0x1fffff);
}

/**
 * Every state that can be reached, breadth first, so that the first violation has a shortest trace. Afterwards: from each
 * of them, does a way without further faults lead to an end of the request? States are kept as hashes, and whole only
 * until they are expanded.
 */
export function explore(initial: State, rules: Rules, limit = 2_000_000): Exploration {
  const indexOf = new Map<number, number>();
  const parents: number[] = [];
  const labels: string[] = [];
  const settled: number[] = [];
  /** Ways without faults, backwards: pairs of state and predecessor. */
  const edges: number[] = [];
  const queue: (State | undefined)[] = [];
  let count = 0;

  const traceTo = (state: number): string[] => {
    const trace: string[] = [];
    for (let at = state; at > 0; at = parents[at] ?? 0) trace.unshift(labels[at] ?? '');
    return trace;
  };
  const visit = (state: State, parent: number, label: string): number => {
    const hash = hashOf(keyOf(state));
    const known = indexOf.get(hash);
    if (known !== undefined) return known;
    const index = parents.length;
    if (index >= limit) throw new Error(`more than ${limit} states`);
    indexOf.set(hash, index);
    parents.push(parent);
    labels.push(label);
    queue.push(state);
    if (isSettled(state, rules)) settled.push(index);
    return index;
  };
  visit(initial, 0, '');
  for (let at = 0; at < queue.length; at += 1) {
    const state = queue[at] as State;
    queue[at] = undefined;
    const fault = faultIn(state, rules);
    if (fault !== '') return { states: parents.length, transitions: count, violation: { fault, trace: traceTo(at) } };
    if (isOver(state)) continue;
    for (const { label, isFault, next } of transitions(state, rules)) {
      count += 1;
      const index = visit(next, at, label);
      if (!isFault) edges.push(index, at);
    }
  }
  const stuck = firstStuck(parents.length, edges, settled);
  const violation =
    stuck === undefined ? undefined : { fault: '[P3] no way leads to an answer', trace: traceTo(stuck) };
  return { states: parents.length, transitions: count, violation };
}

/** The first state from which no edges lead to a settled one. */
function firstStuck(states: number, edges: readonly number[], settled: readonly number[]): number | undefined {
  const starts = new Uint32Array(states + 1);
  for (let at = 0; at < edges.length; at += 2)
    starts[(edges[at] as number) + 1] = (starts[(edges[at] as number) + 1] ?? 0) + 1;
  for (let at = 1; at <= states; at += 1) starts[at] = (starts[at] ?? 0) + (starts[at - 1] ?? 0);
  const fill = starts.slice();
  const sources = new Uint32Array(edges.length / 2);
  for (let at = 0; at < edges.length; at += 2) {
    const target = edges[at] as number;
    const place = fill[target] ?? 0;
    fill[target] = place + 1;
    sources[place] = edges[at + 1] as number;
  }
  const isReached = new Uint8Array(states);
  const stack = [...settled];
  for (const state of settled) isReached[state] = 1;
  for (let state = stack.pop(); state !== undefined; state = stack.pop()) {
    for (let at = starts[state] ?? 0; at < (starts[state + 1] ?? 0); at += 1) {
      const source = sources[at] as number;
      if (isReached[source] === 1) continue;
      isReached[source] = 1;
      stack.push(source);
    }
  }
  const stuck = isReached.indexOf(0);
  return stuck < 0 ? undefined : stuck;
}
