import { has, type Rules } from './rules.ts';
import type { Letter, Process, State } from './state.ts';

/** The next letter of each mailbox of a process: its name's and those of its earlier names, read before it lost them. */
export function frontLetters({ redis }: State, { name }: Process): [number, Letter][] {
  const found: [number, Letter][] = [];
  for (let box = name; box > 0; box -= 2) {
    const letter = redis.mail[box]?.[0];
    if (letter !== undefined) found.push([box, letter]);
  }
  return found;
}

/** Redis gives the next letter of a mailbox to its receiver. */
export function give({ redis }: State, box: number): void {
  const [letter, ...others] = redis.mail[box] as [Letter, ...Letter[]];
  redis.mail[box] = [{ ...letter, isGiven: true }, ...others];
}

/** The request of an ingress that lies in a mailbox, if its ingress may take it back: it was never given, and lies there once. */
export function withdrawable({ redis }: State, { name, exchange }: Process, rules: Rules): Letter | undefined {
  const isOwn = ({ from, kind, asking }: Letter) => from === name && kind === 'run' && asking === exchange.asking;
  const letter = redis.mail[exchange.to]?.find(isOwn);
  const isUnseen = letter?.isGiven === false || !has(rules, 'unseen');
  const isOnce = (letter?.isRepeat === false && !exchange.isUnsure) || !has(rules, 'postedOnce');
  return isUnseen && isOnce ? letter : undefined;
}

/** Takes a letter out; says what its number tells. */
export function take(
  next: State,
  self: Process,
  box: number,
  letter: Letter,
  rules: Rules,
): 'next' | 'repeat' | 'hole' {
  next.redis.mail[box] = (next.redis.mail[box] ?? []).slice(1);
  return takeNumber(self, box, letter, rules);
}

/** Says what the number of a letter tells, and remembers it. */
export function takeNumber(self: Process, box: number, letter: Letter, rules: Rules): 'next' | 'repeat' | 'hole' {
  if (!has(rules, 'letterNumbers')) return 'next';
  // Numbers count from a sender's name to a mailbox; a new name of the receiver begins again.
  const got = self.gotFrom[`${box} ${letter.from}`] ?? 0;
  if (letter.number <= got) return 'repeat';
  self.gotFrom[`${box} ${letter.from}`] = letter.number;
  return letter.number === got + 1 ? 'next' : 'hole';
}
