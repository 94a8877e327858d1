/** When two states are the same. */
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
  const { owner, epoch, hasTombstone, tail, stream, log, leases, birth, isYoung } = redis;
  let text = `${owner},${epoch},${tail},${ofStream(stream)},${birth},${flags(hasTombstone, isYoung)}|${ofEvents(log)}|`;
  leases.forEach((lease, name) => {
    if (lease === 'held' && (state === null || isNamed(state, name))) text += `l${name}`;
  });
  return text;
}

const ofLetter = (letter: Letter | null): string =>
  letter === null ? '' : `${letter.kind},${letter.cursor},${ofEvent(letter.event)}`;

const askingOf = ({ processes }: State, name: number): number => processes[processOf(name)]?.exchange.asking ?? 0;

/** Can anything that follows depend on this name's lease? */
function isNamed({ redis, delayed, processes, connections, replica, budget }: State, name: number): boolean {
  if (redis.owner === name || replica !== null || budget.replicate > 0 || delayed !== null) return true;
  for (const { isUp, name: current, exchange, command, retry, session } of processes) {
    if ((isUp && current === name) || exchange.to === name) return true;
    if ([command, retry].some((sent) => sent?.name === name || sent?.from === name)) return true;
    if (session?.readers.some((reader) => reader?.name === name)) return true;
  }
  return connections.some(({ from, to }) => from === name || to === name);
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
  let text = `${name},${process.birth},${flags(holdsByClock, isClockStale, isCut, isHealthy, sawYoung)}|`;
  text += `${exchange.step},${exchange.to}|${ofCommand(process.command)}|${ofCommand(process.retry)}|`;
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
  for (const { from, to, asking, isOpen, request, answers } of state.connections) {
    text += `c${from},${to},${asking - askingOf(state, from)},${flags(isOpen)},${ofLetter(request)}/`;
    for (const each of answers) text += `${ofLetter(each)};`;
  }
  text += `#${ofProcess(processes[0], state)}#${ofProcess(processes[1], state)}#`;
  text += `${client.at},${client.cursor},${client.answers},${flags(client.isOver, ghost.isDeleted, ghost.hasLost)}`;
  text += `#${client.seen.join()}#${ghost.issued},${ghost.holders.join()},${ghost.handedOver},${ghost.fault}#`;
  for (const id in ghost.everStored) text += `${id}${ghost.everStored[id]}`;
  return `${text}#${Object.values(budget).join('')}`;
}
