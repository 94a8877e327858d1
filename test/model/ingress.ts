/** What an ingress does for its client's request: finds the owner, hears from it, reads the log, notices a loss. */
import { answer, deliver, notFound } from './client.ts';
import { canSpeak, mayTakeOver, replies } from './conditions.ts';
import { canDial, isQueued, sendByLink } from './link.ts';
import { frontLetters, take, withdrawable } from './mail.ts';
import { handOver, withReader } from './owner.ts';
import { post, readAfter } from './redis.ts';
import { has, type Rules } from './rules.ts';
import type { Letter, Process, State } from './state.ts';
import { processOf } from './state.ts';
import type { Add } from './steps.ts';

/** The owner that a request was sent to is lost: go on behind the cursor, or run it again, or say what is known. */
export function lost(next: State, self: Process, rules: Rules): void {
  const { exchange } = self;
  // The next post says that the owner does not live, but the first one may have reached it.
  const isTakenForUnsent = exchange.isUnsure && !has(rules, 'unsurePost');
  Object.assign(exchange, { step: 'unsent', isUnsure: false, to: 0 });
  if (isTakenForUnsent) return;
  if (next.client.cursor > 0 || rules.isHarmless || !has(rules, 'outcomeUnknown')) return;
  answer(next, processOf(self.name));
}

export function ingressSteps(state: State, index: number, rules: Rules, add: Add): void {
  const process = state.processes[index];
  if (process?.isUp !== true) return;
  const { exchange, isCut, session } = process;
  const { redis, client } = state;
  const step = (label: string, change: (next: State, self: Process) => void, isFault = false) =>
    add(`${'AB'[index]} ${label}`, (next) => change(next, next.processes[index] as Process), { isFault, of: index });

  if (!isCut) {
    for (const [box, letter] of frontLetters(state, process)) {
      if (!replies.includes(letter.kind)) continue;
      step(`gets ${letter.kind} (letter ${letter.number})`, (next, self) =>
        hear(next, self, take(next, self, box, letter, rules), letter, rules),
      );
    }
  }
  if (exchange.step === 'none') return;
  const isSelf = processOf(exchange.to) === index;
  if (exchange.step === 'sent') {
    const isGone = !isSelf && !isCut && redis.leases[exchange.to] !== 'held';
    if (isGone) step(`finds ${exchange.to} lost`, (next, self) => lost(next, self, rules));
    const letter = isGone ? withdrawable(state, process, rules) : undefined;
    if (letter !== undefined) {
      step(`takes its request back from ${exchange.to}`, (next, self) => {
        const { to } = self.exchange;
        // What was given is in the memory of its receiver, too.
        if (!letter.isGiven) next.redis.mail[to] = (next.redis.mail[to] ?? []).filter((other) => other !== letter);
        Object.assign(self.exchange, { step: 'unsent', to: 0 });
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
  if (session !== null || owner === 0 || owner === process.name) return;
  if (redis.leases[owner] !== 'held') {
    if (exchange.isUnsure) step('finds no owner to ask', (after, self) => lost(after, self, rules));
    return;
  }
  const kind = client.cursor > 0 ? 'resume' : exchange.isUnsure ? 'ask' : 'run';
  const letter = (self: Process) => {
    self.exchange.asking += 1;
    return { kind, asking: self.exchange.asking, cursor: client.cursor, event: null } as const;
  };
  const send = (after: State, self: Process) => post(after, self, owner, letter(self));
  const mayPost = !isQueued(state, process, owner);
  if (mayPost) {
    step(`posts ${kind} to ${owner}`, (after, self) => {
      send(after, self);
      Object.assign(self.exchange, { step: 'sent', to: owner });
    });
  }
  if (canDial(state, process, owner, rules)) {
    step(`sends ${kind} to ${owner} by link`, (after, self) => {
      sendByLink(after, self, owner, letter(self));
      Object.assign(self.exchange, { step: 'sent', to: owner });
    });
  }
  if (mayPost && state.budget.lose > 0 && kind === 'run') {
    const postUnsure = (after: State, self: Process) => {
      after.budget = { ...after.budget, lose: after.budget.lose - 1 };
      send(after, self);
      Object.assign(self.exchange, { step: 'sent', to: owner, isUnsure: true });
    };
    step(`posts ${kind} to ${owner}, without an answer`, postUnsure, true);
  }
}

function serveHere(next: State, self: Process, rules: Rules): void {
  const { session, exchange } = self;
  if (session === null) return;
  if (next.client.cursor === 0) {
    if (exchange.isUnsure) return lost(next, self, rules);
    handOver(next, session, rules);
  }
  exchange.asking += 1;
  Object.assign(exchange, { step: 'sent', to: self.name });
  const reader = { name: self.name, asking: exchange.asking, cursor: next.client.cursor };
  session.readers = withReader(session.readers, reader);
}

/** What the ingress does about a letter, whose number tells whether it is the next one. */
export function hear(next: State, self: Process, number: ReturnType<typeof take>, letter: Letter, rules: Rules): void {
  const { exchange } = self;
  const { kind, from, asking, event } = letter;
  const isFromOwner = (exchange.step === 'sent' && exchange.to === from) || !has(rules, 'senderOnly');
  const isAsked = exchange.asking === asking || !has(rules, 'askingNumbers');
  if (number === 'repeat' || exchange.step === 'none' || !isFromOwner) return;
  if (!isAsked) {
    // A hole concerns every request, whatever the letter behind it is about.
    if (number === 'hole') Object.assign(exchange, { step: 'unsent', isUnsure: next.client.cursor === 0 });
    return;
  }
  const index = processOf(self.name);
  const { cursor } = next.client;
  if (kind === 'answer' || kind === 'broken') answer(next, index);
  else if (number === 'hole') Object.assign(exchange, { step: 'unsent', isUnsure: cursor === 0 });
  else if (event !== null) deliver(next, index, event);
  else if (exchange.isUnsure && cursor === 0) lost(next, self, rules);
  else exchange.step = 'unsent';
}
