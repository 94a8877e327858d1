/** What an ingress does for its client's request: finds the owner, hears from it, reads the log, notices a loss. */
import { answer, deliver, notFound } from './client.ts';
import { canSpeak, mayTakeOver } from './conditions.ts';
import { ask, canAsk, giveUp } from './connections.ts';
import { handOver, withReader } from './owner.ts';
import { readAfter } from './redis.ts';
import { has, type Rules } from './rules.ts';
import type { Letter, Process, State } from './state.ts';
import { processOf } from './state.ts';
import type { Add } from './steps.ts';

/** The owner that a request was sent to is lost: go on behind the cursor, or run it again, or say what is known. */
export function lost(next: State, self: Process, rules: Rules): void {
  Object.assign(self.exchange, { step: 'unsent', to: 0 });
  if (next.client.cursor > 0 || rules.isHarmless || !has(rules, 'outcomeUnknown')) return;
  answer(next, processOf(self.name));
}

export function ingressSteps(state: State, index: number, rules: Rules, add: Add): void {
  const process = state.processes[index];
  if (process?.isUp !== true) return;
  const { exchange, isCut, session } = process;
  const { redis, client } = state;
  const step = (label: string, change: (next: State, self: Process) => void) =>
    add(`${'AB'[index]} ${label}`, (next) => change(next, next.processes[index] as Process), { of: index });

  if (exchange.step === 'none') return;
  const isSelf = processOf(exchange.to) === index;
  if (exchange.step === 'sent') {
    const isGone = !isSelf && !isCut && redis.leases[exchange.to] !== 'held';
    if (isGone) {
      step(`finds ${exchange.to} lost`, (next, self) => {
        giveUp(next, self);
        lost(next, self, rules);
      });
    }
    return;
  }
  // Here, and free to go on: the owner is this instance, as far as it knows.
  if (session !== null && rules.request !== 'any') {
    if (canSpeak(process, rules)) step('serves its client itself', (next, self) => serveHere(next, self, rules));
  }
  if (isCut) return;
  if (redis.epoch === 0) {
    const mayDeny = redis.hasTombstone || (session === null && mayTakeOver(state, process, rules));
    if (mayDeny) step('says 404', (next) => notFound(next, index, rules));
    return;
  }
  if (rules.request === 'any') return;
  const next = client.cursor > 0 && client.at === index ? readAfter(state, client.cursor) : 'nothing';
  if (next === 'broken') step('reads that the log is broken', (after) => answer(after, index));
  else if (next !== 'nothing' && next !== 'in_future') step(`reads ${next.id}`, (after) => deliver(after, index, next));

  const { owner } = redis;
  if (session !== null || owner === 0 || owner === process.name || redis.leases[owner] !== 'held') return;
  const kind = client.cursor > 0 ? 'resume' : 'run';
  if (canAsk(state, owner)) step(`sends ${kind} to ${owner}`, (after, self) => ask(after, self, owner, kind));
}

function serveHere(next: State, self: Process, rules: Rules): void {
  const { session, exchange } = self;
  if (session === null) return;
  if (next.client.cursor === 0) handOver(next, session, rules);
  exchange.asking += 1;
  Object.assign(exchange, { step: 'sent', to: self.name });
  const reader = { name: self.name, asking: exchange.asking, cursor: next.client.cursor };
  session.readers = withReader(session.readers, reader);
}

/** What the ingress does about an answer of the owner that it waits for. */
export function hear(next: State, self: Process, { kind, event }: Letter): void {
  const index = processOf(self.name);
  if (kind === 'answer' || kind === 'broken') answer(next, index);
  else if (event !== null) deliver(next, index, event);
  else self.exchange.step = 'unsent';
}
