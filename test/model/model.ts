/** The whole model: every next state of a state, and what must hold in each. */
import { canSpeak } from './conditions.ts';
import { connectionSteps } from './connections.ts';
import { clientSteps, faultSteps, timeSteps } from './environment.ts';
import { ingressSteps } from './ingress.ts';
import { instanceSteps } from './instance.ts';
import { ownerSteps } from './owner.ts';
import type { Rules } from './rules.ts';
import { copyOf, type State } from './state.ts';
import type { Add } from './steps.ts';

/** One transition. Faults are what the environment need not do: an answer may not depend on them. */
export interface Transition {
  readonly label: string;
  readonly isFault: boolean;
  readonly next: State;
}

/** Everything that can happen next. */
export function transitions(state: State, rules: Rules): Transition[] {
  const found: Transition[] = [];
  const add: Add = (label, change, { isFault = false, of } = {}) => {
    const next = copyOf(state, of);
    change(next);
    found.push({ label, isFault, next });
  };
  for (const index of [0, 1]) {
    instanceSteps(state, index, rules, add);
    ownerSteps(state, index, rules, add);
    ingressSteps(state, index, rules, add);
  }
  connectionSteps(state, rules, add);
  timeSteps(state, add);
  clientSteps(state, add);
  faultSteps(state, rules, add);
  return found;
}

/** What is wrong in this state, or was in the step to it; empty if nothing is. */
export function faultIn(state: State, rules: Rules): string {
  const { redis, processes, ghost } = state;
  if (ghost.fault !== '') return ghost.fault;
  const speakers = processes.filter((process) => canSpeak(process, rules));
  if (speakers.length > 1) return '[P6] two owners may speak';
  if (speakers.some(({ session }) => redis.epoch > (session?.epoch ?? 0))) {
    return '[P6] the session was taken over while its owner may speak';
  }
  if (ghost.isDeleted && !ghost.hasLost && redis.epoch > 0) return '[P7] a deleted session lives again';
  return '';
}

/** The request has its end, as far as its client can know (P3): nothing that follows is looked at. */
export const isOver = ({ client }: State): boolean => client.answers > 0 || client.isOver;

/** What must stay within reach: the end of the request; an owner that speaks, if there is no request. */
export const isSettled = (state: State, rules: Rules): boolean =>
  isOver(state) || (rules.request === 'any' && state.processes.some((process) => canSpeak(process, rules)));
