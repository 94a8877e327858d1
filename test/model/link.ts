/** The direct connections between two names: letters that never lie in Redis, and how they come back to it. */

import { replies } from './conditions.ts';
import { hear } from './ingress.ts';
import { takeNumber } from './mail.ts';
import { mayServe, receiveLetter } from './owner.ts';
import { post } from './redis.ts';
import { has, type Rules } from './rules.ts';
import { type Letter, type Process, processOf, type State, type Wire } from './state.ts';
import type { Add } from './steps.ts';

/** Older letters of a connection are known to have arrived. It keeps the model finite. */
const mostUnacknowledged = 2;

const processNamed = ({ processes }: State, name: number): Process | undefined => {
  const process = processes[processOf(name)];
  return process?.isUp === true && process.name === name ? process : undefined;
};

const changeWire = (next: State, wire: Wire, change: Partial<Wire>): void => {
  const changed = { ...wire, ...change };
  const isUsed = changed.isOpen || changed.letters.length > 0 || changed.toRepost.length > 0;
  next.wires = next.wires.flatMap((other) => (other !== wire ? [other] : isUsed ? [changed] : []));
};

/** Is an earlier letter to this name still on its way by a connection, or has to go to the mailbox first? */
export const isQueued = ({ wires }: State, { name }: Process, to: number): boolean =>
  wires.some((wire) => {
    const isUsed = (wire.isOpen && wire.letters.length > 0) || wire.toRepost.length > 0;
    return isUsed && wire.from === name && wire.to === to;
  });

/** May a letter go by a connection? The handshake names both, so the peer must run under the name of the record. */
export const canDial = (state: State, from: Process, to: number, rules: Rules): boolean =>
  rules.hasLink === true &&
  processOf(to) !== processOf(from.name) &&
  processNamed(state, to) !== undefined &&
  !state.wires.some((wire) => wire.toRepost.length > 0 && wire.from === from.name && wire.to === to);

/** Sends a letter over the open connection, or over a new one. It has the next number, whatever way it goes. */
export function sendByLink(
  next: State,
  from: Process,
  to: number,
  letter: Omit<Letter, 'from' | 'number' | 'isGiven' | 'isRepeat'>,
): void {
  const number = (from.sentTo[to] ?? 0) + 1;
  from.sentTo[to] = number;
  const sent: Letter = { ...letter, from: from.name, number, isGiven: true, isRepeat: false };
  const open = next.wires.find((wire) => wire.isOpen && wire.from === from.name && wire.to === to);
  if (open === undefined) {
    next.wires = [...next.wires, { from: from.name, to, isOpen: true, letters: [sent], handled: [], toRepost: [] }];
  } else changeWire(next, open, { letters: [...open.letters, sent] });
}

export function linkSteps(state: State, rules: Rules, add: Add): void {
  for (const wire of state.wires) {
    const { from, to, isOpen, letters, handled, toRepost } = wire;
    const sender = processNamed(state, from);
    const receiver = processNamed(state, to);
    const [letter] = letters;
    const label = `the link ${from} to ${to}`;
    const own = (next: State): Wire => next.wires.find((other) => other === wire) as Wire;
    if (letter !== undefined && receiver !== undefined) {
      const got = receiver.gotFrom[`${to} ${from}`] ?? 0;
      const isRefused = !receiver.holdsByClock || letter.number > got + 1;
      if (isRefused) {
        // The letters behind it are refused too: the first one is missing.
        add(`${label} is refused letter ${letter.number}`, (next) =>
          changeWire(next, own(next), { isOpen: false, letters: [], toRepost: isOpen ? letters : toRepost }),
        );
      } else if (replies.includes(letter.kind) || mayServe(state, receiver, to, rules)) {
        add(`${label} brings ${letter.kind} (letter ${letter.number})`, (next) => {
          changeWire(next, own(next), {
            letters: letters.slice(1),
            handled: isOpen ? [...handled, letter].slice(-mostUnacknowledged) : handled,
          });
          const self = next.processes[processOf(to)] as Process;
          const number = takeNumber(self, to, letter, rules);
          if (replies.includes(letter.kind)) hear(next, self, number, letter, rules);
          else receiveLetter(next, self, number, letter, rules);
        });
      }
    }
    // Letters on a connection that its sender has given up may still arrive, at any time later, or never.
    if (!isOpen && letters.length > 0) {
      add(`${label} drops its letters`, (next) => changeWire(next, own(next), { letters: [] }));
    }
    if (isOpen && sender === undefined) {
      add(`${label} has lost its sender`, (next) => changeWire(next, own(next), { isOpen: false }));
    }
    const breakUp = (unacknowledged: readonly Letter[]) => (next: State) => {
      const isRepeat = has(rules, 'linkUnsure');
      const toRepost = [...unacknowledged, ...letters].map((each) => ({ ...each, isRepeat }));
      changeWire(next, own(next), { isOpen: false, toRepost });
    };
    if (isOpen && sender !== undefined) {
      if (receiver === undefined) add(`${label} is noticed to be broken`, breakUp(handled));
      const { budget } = state;
      if (budget.linkBreak > 0) {
        const spend = (change: (next: State) => void) => (next: State) => {
          next.budget = { ...budget, linkBreak: budget.linkBreak - 1 };
          change(next);
        };
        add(`${label} breaks`, spend(breakUp([])), { isFault: true });
        if (handled.length > 0) add(`${label} breaks before its acks`, spend(breakUp(handled)), { isFault: true });
      }
    }
    if (toRepost.length > 0 && sender !== undefined && !sender.isCut) {
      add(`${label} leaves its letters to the mailbox`, (next) => {
        changeWire(next, own(next), { toRepost: [] });
        const self = next.processes[processOf(from)] as Process;
        for (const each of toRepost) repost(next, self, to, each, rules);
      });
    } else if (toRepost.length > 0 && sender === undefined) {
      add(`${label} is forgotten`, (next) => changeWire(next, own(next), { toRepost: [] }));
    }
  }
}

/** Puts a letter into the mailbox under the number that it had on the link. */
function repost(next: State, self: Process, to: number, letter: Letter, rules: Rules): void {
  const sent = self.sentTo[to] ?? 0;
  if (has(rules, 'linkNumbers')) self.sentTo[to] = letter.number - 1;
  const isPosted = post(next, self, to, letter, letter.isRepeat);
  if (has(rules, 'linkNumbers') || !isPosted) self.sentTo[to] = sent;
}
