/** When two states are the same. */
import { replies } from './conditions.ts';
import { type Command, type Event, type Letter, type Process, processOf, type Redis, type State } from './state.ts';

const ofEvent = (event: Event | null): string =>
  event === null ? '' : `${event.id},${event.previous},${event.content},${event.isLast ? 1 : 0}`;

const ofEvents = (events: readonly Event[]): string => {
  let text = '';
  for (const event of events) text += `${ofEvent(event)};`;
  return text;
};

const flags = (...values: boolean[]): number => values.reduce((bits, value) => bits * 2 + (value ? 1 : 0), 0);

const ofStream = ({ newest, hasEnded, isPending }: Redis['stream']): string =>
  `${newest}.${flags(hasEnded, isPending)}`;

function ofRedis(redis: Redis, state: State | null): string {
  const { owner, epoch, hasTombstone, tail, stream, log, leases, mail, birth, isYoung } = redis;
  let text = `${owner},${epoch},${tail},${ofStream(stream)},${birth},${flags(hasTombstone, isYoung)}|${ofEvents(log)}|`;
  leases.forEach((lease, name) => {
    if (lease === 'held' && (state === null || isNamed(state, name))) text += `l${name}`;
  });
  mail.forEach((letters, box) => {
    const isDown = state?.processes[processOf(box)]?.isUp === false;
    for (const { from, number, kind, asking, cursor, event, isGiven, isRepeat } of letters) {
      if (isDown && isGiven) continue; // nobody will read it, nor take it back
      // Numbers are only compared with the last one got and the last asking: their differences are enough.
      const count = state === null ? number : number - gotFrom(state, box, from);
      const asked = state === null ? asking : asking - askingOf(state, replies.includes(kind) ? box : from);
      text += `m${box},${from},${count},${kind},${asked},${cursor},${ofEvent(event)},${flags(isGiven, isRepeat)}`;
    }
  });
  return text;
}

const ofLetters = (letters: readonly Letter[], to: number, state: State): string =>
  letters
    .map(({ from, number, kind, asking, cursor, event, isRepeat }) => {
      // A number that was taken is a repeat, and an earlier asking is over, however old they are.
      const asked = Math.max(-1, asking - askingOf(state, replies.includes(kind) ? to : from));
      return `${Math.max(0, number - gotFrom(state, to, from))},${kind},${asked},${cursor},${ofEvent(event)},${flags(isRepeat)};`;
    })
    .join('');

const gotFrom = ({ processes }: State, box: number, from: number): number =>
  processes[processOf(box)]?.gotFrom[`${box} ${from}`] ?? 0;

const askingOf = ({ processes }: State, name: number): number => processes[processOf(name)]?.exchange.asking ?? 0;

/** Can anything that follows depend on this name's lease? */
function isNamed({ redis, delayed, processes, replica, budget }: State, name: number): boolean {
  if (redis.owner === name || replica !== null || budget.replicate > 0 || delayed !== null) return true;
  for (const { isUp, name: current, exchange, command, retry, session } of processes) {
    if ((isUp && current === name) || exchange.to === name) return true;
    if ([command, retry].some((sent) => sent?.name === name || sent?.from === name)) return true;
    if (session?.readers.some((reader) => reader?.name === name)) return true;
  }
  return redis.mail.some((letters) => letters.some(({ from }) => from === name));
}

const replicas = new WeakMap<Redis, string>();

function ofReplica(redis: Redis): string {
  const known = replicas.get(redis) ?? ofRedis(redis, null);
  replicas.set(redis, known);
  return known;
}

function ofCommand(command: Command | null): string {
  if (command === null) return '-';
  const { kind, name, epoch, from, event, tail, stream, reply, isOfOlderTerm, hasLapsed } = command;
  const log = ofStream(stream);
  return `${kind},${name},${epoch},${from},${ofEvent(event)},${tail},${log},${reply},${flags(isOfOlderTerm, hasLapsed)}`;
}

function ofProcess(process: Process, state: State): string {
  const { isUp, name, holdsByClock, isClockStale, isCut, isHealthy, sawYoung, session, exchange } = process;
  if (!isUp) return `${name} down`;
  let text = `${name},${process.birth},${flags(holdsByClock, isClockStale, isCut, isHealthy, sawYoung, exchange.isUnsure)}|`;
  text += `${exchange.step},${exchange.to}|${ofCommand(process.command)}|${ofCommand(process.retry)}|`;
  // With a replica the numbers in its mailboxes may come back.
  if (state.replica !== null) text += `${exchange.asking},${JSON.stringify(process.gotFrom)}`;
  process.sentTo.forEach((sent, box) => {
    const unread = sent - gotFrom(state, box, name);
    if (unread !== 0 && state.processes[processOf(box)]?.isUp === true) text += `u${box}:${unread}`;
  });
  if (session === null) return text;
  const { epoch, isVerified, isClaimed, hasLapsed, hasBroken, call, readers, base, events, stored, made } = session;
  text += `s${epoch},${flags(isVerified, isClaimed, hasLapsed, hasBroken)},${call},${ofStream(base)},${stored},${made}|`;
  for (const reader of readers)
    text += reader === null ? 'r' : `r${reader.name},${reader.asking - askingOf(state, reader.name)},${reader.cursor}`;
  return `${text}|${ofEvents(events)}`;
}

/** A text that two states share only if they are the same for all that follows. */
export function keyOf(state: State): string {
  const { redis, replica, delayed, processes, client, ghost, budget } = state;
  let text = `${ofRedis(redis, state)}#${replica === null ? '' : ofReplica(replica)}#${ofCommand(delayed)}#`;
  for (const { from, to, isOpen, letters, handled, toRepost } of state.wires) {
    text += `w${from},${to},${flags(isOpen)}`;
    for (const each of [letters, handled, toRepost]) text += `${ofLetters(each, to, state)}/`;
  }
  text += `#${ofProcess(processes[0], state)}#${ofProcess(processes[1], state)}#`;
  text += `${client.at},${client.cursor},${client.answers},${flags(client.isOver, ghost.isDeleted, ghost.hasLost)}`;
  text += `#${client.seen.join()}#${ghost.issued},${ghost.holders.join()},${ghost.handedOver},${ghost.fault}#`;
  for (const id in ghost.everStored) text += `${id}${ghost.everStored[id]}`;
  return `${text}#${Object.values(budget).join('')}`;
}
