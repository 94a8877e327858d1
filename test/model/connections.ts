/** The requests between the two instances: each has a connection of its own, which can break at any moment. */

import { hear, lost } from './ingress.ts';
import { mayServe, receiveRequest } from './owner.ts';
import type { Rules } from './rules.ts';
import { type Connection, type Letter, type Process, processOf, type State } from './state.ts';
import type { Add } from './steps.ts';

const processAt = ({ processes }: State, name: number): Process | undefined => {
  const process = processes[processOf(name)];
  return process?.isUp === true ? process : undefined;
};

/** Can an owner be asked? Its process runs, under this name or another one. */
export const canAsk = (state: State, to: number): boolean => processAt(state, to) !== undefined;

/** Sends a request to an owner. */
export function ask(next: State, self: Process, to: number, kind: 'run' | 'resume'): void {
  const { exchange } = self;
  exchange.asking += 1;
  Object.assign(exchange, { step: 'sent', to });
  const request: Letter = { kind, cursor: next.client.cursor, event: null };
  const { asking } = exchange;
  next.connections = [...next.connections, { from: self.name, to, asking, isOpen: true, request, answers: [] }];
}

const change = (next: State, old: Connection, now: Partial<Connection>): void => {
  const changed = { ...old, ...now };
  // What its ingress has given up matters only as long as its request may arrive.
  const isUsed = changed.isOpen || changed.request !== null;
  next.connections = next.connections.flatMap((other) => (other !== old ? [other] : isUsed ? [changed] : []));
};

/** The ingress gives its request up. */
export function giveUp(next: State, self: Process): void {
  const { asking } = self.exchange;
  const own = next.connections.find((each) => each.asking === asking && processOf(each.from) === processOf(self.name));
  if (own !== undefined) change(next, own, { isOpen: false, answers: [] });
}

/** The owner answers; false if the connection is gone. */
export function say(next: State, ingress: number, asking: number, letter: Letter): boolean {
  const own = next.connections.find((each) => each.from === ingress && each.asking === asking && each.isOpen);
  if (own !== undefined) change(next, own, { answers: [...own.answers, letter] });
  return own !== undefined;
}

export function connectionSteps(state: State, rules: Rules, add: Add): void {
  for (const connection of state.connections) {
    const { from, to, asking, isOpen, request, answers } = connection;
    const label = `the connection of ${from} to ${to}`;
    const own = (next: State): Connection => next.connections.find((each) => each === connection) as Connection;
    const [ingress, owner] = [processAt(state, from), processAt(state, to)];
    if (request !== null && owner !== undefined) {
      const isRenamed = owner.name !== to;
      if (isRenamed || mayServe(state, owner, rules)) {
        add(`${label} brings ${request.kind}`, (next) => {
          change(next, own(next), { request: null });
          const self = next.processes[processOf(to)] as Process;
          if (isRenamed) say(next, from, asking, { kind: 'none', cursor: 0, event: null });
          else receiveRequest(next, self, { name: from, asking }, request, rules);
        });
      }
    }
    if (!isOpen) {
      if (request !== null) add(`${label} loses its request`, (next) => change(next, own(next), { request: null }));
      continue;
    }
    if (ingress === undefined) {
      add(`${label} has lost its ingress`, (next) => change(next, own(next), { isOpen: false, answers: [] }));
      continue;
    }
    const [answer] = answers;
    if (answer !== undefined) {
      add(`${label} brings ${answer.kind}`, (next) => {
        const isOver = answer.kind === 'none';
        change(next, own(next), { answers: answers.slice(1), isOpen: !isOver });
        hear(next, next.processes[processOf(from)] as Process, answer);
      });
    }
    const breakUp = (next: State): void => {
      change(next, own(next), { isOpen: false, answers: [] });
      lost(next, next.processes[processOf(from)] as Process, rules);
    };
    if (owner === undefined) add(`${label} is noticed to be broken`, breakUp);
    const { budget } = state;
    if (budget.linkBreak > 0) {
      const spend = (next: State): void => {
        next.budget = { ...budget, linkBreak: budget.linkBreak - 1 };
        breakUp(next);
      };
      add(`${label} breaks`, spend, { isFault: true });
    }
  }
}
