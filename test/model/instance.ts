/** What an instance does about its lease, its terms, its session's record and the replies of Redis. */
import { mayTakeOver, wants } from './conditions.ts';
import { lost } from './ingress.ts';
import { execute } from './redis.ts';
import { has, type Rules } from './rules.ts';
import { type Command, names, newSession, noStream, type Process, processOf, type State } from './state.ts';
import type { Add } from './steps.ts';

/** The instance cannot be sure of the store any more. `isBreak`: what was stored may be lost. */
function beginTerm(process: Process, rules: Rules, isBreak: boolean): void {
  const { session } = process;
  if (process.command !== null) process.command = { ...process.command, isOfOlderTerm: true };
  if (session !== null) {
    session.hasBroken ||= isBreak;
    if (has(rules, 'verify')) session.isVerified = session.isClaimed = false;
  }
}

/** The command has no answer and will have none. */
export function forget(process: Process, rules: Rules): void {
  const { command, session } = process;
  process.command = null;
  // Never under another name: the record would name an owner that is lost.
  if (command?.kind === 'takeOver' && session === null && command.name === process.name) process.retry = command;
  if (command?.kind === 'append' && session !== null && !has(rules, 'askAgain')) session.stored += 1;
}

export function instanceSteps(state: State, index: number, rules: Rules, add: Add): void {
  const process = state.processes[index];
  if (process?.isUp !== true) return;
  const { redis } = state;
  const { command, session } = process;
  const step = (label: string, change: (next: State, process: Process) => void) =>
    add(`${'AB'[index]} ${label}`, (next) => change(next, next.processes[index] as Process), { of: index });

  if (command !== null && command.reply !== null) {
    step(`gets: ${command.kind} ${command.reply}`, (next, self) => receive(next, self, command, rules));
  }
  if (process.isCut) {
    step('notices that its connection broke', (_, self) => {
      self.isCut = self.isHealthy = false;
      if (self.command?.reply === null && has(rules, 'noResend')) forget(self, rules);
      beginTerm(self, rules, true);
    });
    return;
  }
  if (command?.reply === null) {
    step(`${command.kind} reaches Redis`, (next, self) => {
      self.command = executed(next, command, rules);
    });
  }
  const isHeld = redis.leases[process.name] === 'held';
  const isNews = process.birth !== redis.birth || (process.sawYoung !== redis.isYoung && !has(rules, 'freshAge'));
  if (!process.holdsByClock || process.isClockStale || !isHeld || isNews) {
    step(isHeld ? 'renews its lease' : 'finds its lease gone and joins', (next, self) => renew(next, self, rules));
  }
  if (command !== null || !process.holdsByClock) return;
  const send = (kind: Command['kind'], more: Partial<Command>) =>
    step(`sends ${kind}`, (next, self) => {
      const command = { ...emptyCommand, kind, name: self.name, ...more };
      self.command = rules.isPrompt ? executed(next, command, rules) : command;
    });
  if (session === null) {
    findSteps(state, process, rules, send);
    return;
  }
  const { epoch, events, stored } = session;
  const event = events[stored];
  if (event !== undefined) send('append', { epoch, event, tail: stored });
  if (!session.isVerified && !session.isClaimed) {
    const newest = stored > 0 ? events[stored - 1] : undefined;
    const stream =
      newest === undefined ? session.base : { newest: newest.id, hasEnded: newest.isLast, isPending: !newest.isLast };
    send('register', { epoch, from: redis.owner, tail: stored, stream });
  }
  const isReady = session.isClaimed && event === undefined && mayTakeOver(state, process, rules);
  if (isReady) send('takeOver', { epoch, from: process.name });
}

function executed(next: State, command: Command, rules: Rules): Command {
  const { reply, epoch, log } = execute(next, command, rules);
  if (reply === 'registered') return { ...command, reply, tail: next.redis.tail };
  return { ...command, reply, ...(reply === 'taken' ? { epoch, stream: log } : {}) };
}

const emptyCommand: Command = {
  kind: 'append',
  name: 0,
  epoch: 0,
  from: 0,
  event: null,
  tail: 0,
  stream: noStream,
  reply: null,
  isOfOlderTerm: false,
  hasLapsed: false,
};

/** Somebody waits for the session here, and it is not here: who has it? An owner that lives is the ingress's business. */
function findSteps(
  state: State,
  process: Process,
  rules: Rules,
  send: (kind: Command['kind'], more: Partial<Command>) => void,
): void {
  const { redis } = state;
  const { owner, epoch } = redis;
  if (!wants(state, process) || epoch === 0) return;
  const { retry } = process;
  const isOwn = owner === process.name;
  const mayBeTaken = owner === 0 || (isOwn ? has(rules, 'ownName') : redis.leases[owner] !== 'held');
  if (retry !== null) {
    if (mayTakeOver(state, process, rules))
      send('takeOver', { epoch: retry.epoch, from: retry.from, name: retry.name });
    return;
  }
  if (!mayBeTaken && (isOwn || has(rules, 'declareDead'))) return;
  // To declare it dead changes nothing more in this model: a name that lost its lease never gets one again.
  if (mayTakeOver(state, process, rules)) send('takeOver', { epoch, from: owner });
}

function renew(next: State, self: Process, rules: Rules): void {
  const { redis } = next;
  const isBreak = self.birth !== redis.birth;
  const isHeld = redis.leases[self.name] === 'held';
  if (!isHeld) {
    self.name += 2;
    if (self.name > names) throw new Error('The model has too few names for these faults.');
    redis.leases[self.name] = 'held';
    self.retry = null;
  }
  if (!isHeld || isBreak) beginTerm(self, rules, isBreak);
  else if (self.session?.isVerified) self.session.hasLapsed = false;
  Object.assign(self, {
    holdsByClock: true,
    isClockStale: false,
    birth: redis.birth,
    sawYoung: redis.isYoung && !has(rules, 'freshAge'),
  });
}

function receive(next: State, self: Process, command: Command, rules: Rules): void {
  const { kind, reply } = command;
  const { session } = self;
  self.command = null;
  const drop = () => {
    self.session = null;
    const { step, to } = self.exchange;
    if (step === 'sent' && processOf(to) === processOf(self.name)) lost(next, self, rules);
  };
  const isCurrent = !command.isOfOlderTerm || !has(rules, 'termOfReply');
  if (kind === 'takeOver') {
    self.retry = null;
    if (reply === 'taken') take(self, command, isCurrent);
    else if (session !== null) session.isClaimed = false;
    return;
  }
  if (session === null || session.epoch !== command.epoch) return;
  if (reply === 'fenced' || reply === 'ended') drop();
  else if (reply === 'stored' || reply === 'already') session.stored += 1;
  else if (reply === 'no_record') {
    session.isVerified = session.isClaimed = false;
    session.hasBroken = true;
  } else if (reply?.startsWith('gap') === true) session.stored = Number(reply.slice(4));
  else if ((reply === 'registered' || reply === 'restored') && isCurrent) {
    // What had to be written anew was lost, whoever noticed.
    session.hasBroken ||= reply === 'restored' && has(rules, 'restoredTells');
    if (has(rules, 'registerTells')) session.stored = Math.min(session.stored, command.tail);
    const isSuspect = session.hasLapsed && session.hasBroken && has(rules, 'suspect');
    if (isSuspect) session.isClaimed = true;
    else Object.assign(session, { isVerified: true, hasLapsed: command.hasLapsed, hasBroken: false });
  }
}

/** The session is this instance's under a new epoch. What was pending is answered first. */
function take(self: Process, { epoch, stream, hasLapsed, isOfOlderTerm }: Command, isVerified: boolean): void {
  const old = self.session;
  const session = { ...newSession(epoch, isVerified, stream), hasLapsed, hasBroken: isOfOlderTerm };
  self.session = session;
  if (old !== null) {
    const { call, readers, made } = old;
    Object.assign(session, { call, readers, made });
    // What came meanwhile was never sent: it gets its ids under the new epoch.
    let previous = stream.newest;
    session.events = old.events.slice(old.stored).map((event, index) => {
      const renumbered = { ...event, id: epoch * 10 + 1 + index, previous };
      previous = renumbered.id;
      return renumbered;
    });
  } else if (stream.isPending) {
    const content = `${'AB'[processOf(self.name)]}${epoch} error`;
    session.events = [{ id: epoch * 10 + 1, previous: stream.newest, content, isLast: true }];
  }
}
