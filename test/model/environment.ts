/** What happens to the instances: time passes, and everything that can break breaks, as often as the budget allows. */

import type { Budget } from './budget.ts';
import { forget } from './instance.ts';
import { execute } from './redis.ts';
import { has, type Rules } from './rules.ts';
import { copyRedis, cutOff, emptyRedis, newProcess, noStream, type Process, processOf, type State } from './state.ts';
import type { Add } from './steps.ts';

/** No clock runs any more that was confirmed before the last loss: it has been a lease since. */
const isLeaseLater = ({ processes }: State): boolean =>
  !processes.some(({ isUp, holdsByClock, isClockStale }) => isUp && holdsByClock && isClockStale);

function runOut(self: Process): void {
  self.holdsByClock = self.isClockStale = false;
  if (self.session !== null) self.session.hasLapsed = true;
  if (self.command !== null) self.command = { ...self.command, hasLapsed: true };
}

/** Time passes: no fault, and it never stops. */
export function timeSteps(state: State, add: Add): void {
  const { redis, processes } = state;
  redis.leases.forEach((lease, name) => {
    const owner = processes[processOf(name)];
    if (lease !== 'held' || owner === undefined) return;
    // A lease that is held by a clock from before a failover may end: its renewals may be what was lost.
    const mayEnd = !owner.isUp || owner.name !== name || !owner.holdsByClock || owner.isClockStale;
    if (!mayEnd) return;
    add(`the lease of ${name} ends`, (next) => {
      next.redis.leases[name] = 'none';
    });
  });
  processes.forEach((process, index) => {
    if (!process.isUp) return;
    const name = 'AB'[index];
    if (process.holdsByClock && process.isClockStale) {
      add(`${name}'s clock runs out`, (next) => runOut(next.processes[index] as Process));
    }
    if (!process.isCut && !process.isHealthy && isLeaseLater(state)) {
      add(`${name}'s connection has been healthy for a lease`, (next) => {
        (next.processes[index] as Process).isHealthy = true;
      });
    }
  });
  // The 2 s beyond the lease are for owners that live and renewed: to register what they have.
  const isRegistering = ({ isUp, holdsByClock, session, command }: Process) => {
    const isToRegister = session !== null && !session.isVerified && !session.isClaimed;
    return isUp && holdsByClock && (isToRegister || command !== null);
  };
  if (redis.isYoung && isLeaseLater(state) && !processes.some(isRegistering)) {
    add('the data become older than lease + 2 s', (next) => {
      next.redis.isYoung = false;
    });
  }
}

/** A client whose connection broke comes back with its Last-Event-ID, to any instance that runs. */
export function clientSteps(state: State, add: Add): void {
  if (state.client.at !== cutOff || state.client.isOver) return;
  state.processes.forEach(({ isUp }, index) => {
    if (!isUp) return;
    add(`the client resumes at ${'AB'[index]}`, (next) => {
      next.client.at = index;
      (next.processes[index] as Process).exchange.step = 'unsent';
    });
  });
}

/** All writes since some moment, or all data, are gone; `isNoticed`: with the connections. */
function lose(next: State, redis: State['redis'], isNoticed: boolean, rules: Rules): void {
  next.redis = redis;
  next.ghost.hasLost = true;
  if (isNoticed && has(rules, 'noResend')) next.delayed = null;
  for (const process of next.processes) {
    if (isNoticed && process.isUp && has(rules, 'failoverBreaksConnections')) process.isCut = true;
    process.isClockStale = process.isUp && process.holdsByClock;
  }
}

/** Cuts the client off from an instance; without an event id it cannot come back. */
function breakOff(next: State): void {
  next.client.at = cutOff;
  next.client.isOver = next.client.cursor === 0;
}

export function faultSteps(state: State, rules: Rules, add: Add): void {
  const { budget, redis, processes, client, delayed } = state;
  const fault = (kind: keyof Budget, label: string, change: (next: State) => void) => {
    if (budget[kind] === 0) return;
    const spend = (next: State) => {
      next.budget = { ...budget, [kind]: budget[kind] - 1 };
      change(next);
    };
    add(label, spend, { isFault: true });
  };
  fault('restartEmpty', 'Redis restarts empty', (next) => lose(next, emptyRedis(redis.birth + 1), true, rules));
  fault('flush', 'all data are deleted', (next) => lose(next, emptyRedis(redis.birth + 1), false, rules));
  fault('replicate', 'the replica has this state', (next) => {
    next.replica = copyRedis(redis);
  });
  const { replica } = state;
  if (replica !== null) {
    fault('failover', 'the replica becomes the master', (next) => {
      lose(next, copyRedis(replica), true, rules);
      next.replica = null;
    });
  }
  if (delayed !== null) {
    const arrive = (next: State) => {
      next.delayed = null;
      execute(next, delayed, rules);
    };
    add(`the delayed ${delayed.kind} reaches Redis`, arrive, { isFault: true });
  }
  processes.forEach((process, index) => {
    if (!process.isUp) return;
    const name = 'AB'[index];
    const at = (next: State) => next.processes[index] as Process;
    fault('crash', `${name} is killed`, (next) => {
      const killed = newProcess(index);
      killed.exchange.asking = process.exchange.asking; // its connections are compared with it
      next.processes[index] = { ...killed, name: process.name, isUp: false };
      if (client.at === index) breakOff(next);
    });
    if (process.holdsByClock) fault('lapse', `${name}'s clock runs out`, (next) => runOut(at(next)));
    if (!process.isCut) {
      fault('cut', `${name}'s connection breaks`, (next) => {
        at(next).isCut = true;
      });
    }
    const { command } = process;
    if (command !== null) {
      const what = command.reply === null ? command.kind : `reply to ${command.kind}`;
      fault('lose', `${name}'s ${what} is lost`, (next) => forget(at(next), rules));
    }
    if (command !== null && command.reply === null && delayed === null && !process.isCut) {
      fault('delay', `${name} gives up its ${command.kind}, which is still on its way`, (next) => {
        forget(at(next), rules);
        next.delayed = command;
      });
    }
    if (!process.isCut && budget.remove > 0) {
      fault('remove', `the client deletes its session at ${name}`, (next) => {
        const hasTombstone = has(rules, 'tombstone');
        Object.assign(next.redis, { owner: 0, epoch: 0, tail: 0, log: [], stream: noStream, hasTombstone });
        Object.assign(next.ghost, { isDeleted: true, hasLost: false });
      });
    }
  });
  if (client.at >= 0 && client.cursor > 0 && client.answers === 0) {
    fault('drop', "the client's connection breaks", (next) => {
      next.connections = next.connections.map((each) => ({ ...each, isOpen: false, answers: [] }));
      for (const { exchange } of next.processes) Object.assign(exchange, { step: 'none', to: 0 });
      breakOff(next);
    });
  }
}
