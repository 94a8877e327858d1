import type { Rules } from './rules.ts';
import { has } from './rules.ts';
import type { Command, Event, LogState, State } from './state.ts';
import { processOf } from './state.ts';

/** What Redis does with a command, as the promises of src/core/store say. Each is one script: nothing comes in between. */
export function execute(state: State, command: Command, rules: Rules): { reply: string; epoch: number; log: LogState } {
  const done = (reply: string, epoch = command.epoch) => ({ reply, epoch, log: state.redis.stream });
  if (command.kind === 'append') return done(append(state, command, rules));
  if (command.kind === 'register') return done(register(state, command, rules));
  const { redis, ghost } = state;
  if (redis.hasTombstone || redis.epoch === 0) return done('unknown');
  // The caller's own lost reply.
  if (redis.owner === command.name && redis.epoch > command.epoch) return done('taken', redis.epoch);
  if (redis.owner !== command.from || redis.epoch !== command.epoch) return done('moved');
  // TIME moves on between any two takeovers; without it the epoch is only larger than what is left in the store.
  redis.epoch = has(rules, 'epochTime') ? Math.max(redis.epoch, ghost.issued) + 1 : redis.epoch + 1;
  redis.owner = command.name;
  redis.tail = 0;
  ghost.issued = Math.max(ghost.issued, redis.epoch);
  const holder = ghost.holders[redis.epoch];
  if (holder !== undefined && holder !== processOf(command.name)) ghost.fault ||= '[P6] an epoch has two owners';
  ghost.holders = Object.assign([...ghost.holders], { [redis.epoch]: processOf(command.name) });
  return done('taken', redis.epoch);
}

function append(state: State, { epoch, event, tail, name }: Command, rules: Rules): string {
  const { redis, ghost } = state;
  if (event === null) return 'already';
  if (has(rules, 'fence')) {
    if (redis.hasTombstone || redis.epoch > epoch) return 'fenced';
    if (redis.epoch < epoch) return 'no_record';
    if (redis.tail !== tail) return redis.tail === event.id % 10 ? 'already' : `gap ${redis.tail}`;
  }
  if (redis.epoch > epoch || redis.log.some(({ id }) => id > event.id)) ghost.fault ||= '[P6] an older epoch appended';
  if (ghost.holders[epoch] !== processOf(name)) ghost.fault ||= '[P6] appended by another than the holder of the epoch';
  const before = ghost.everStored[event.id];
  if (before !== undefined && before !== event.content) ghost.fault ||= '[P5] an event id has two contents';
  ghost.everStored = { ...ghost.everStored, [event.id]: event.content };
  redis.log = [...redis.log, event];
  redis.tail = event.id % 10;
  redis.stream = { newest: event.id, hasEnded: event.isLast, isPending: !event.isLast };
  return 'stored';
}

function register(state: State, { epoch, name, from, tail, stream }: Command, rules: Rules): string {
  const { redis } = state;
  if (redis.hasTombstone) return 'ended';
  if (redis.epoch > epoch) return 'fenced';
  if (redis.epoch === epoch) {
    if (has(rules, 'registerCompares') && redis.owner !== from) return 'moved';
    redis.owner = name;
    return 'registered';
  }
  Object.assign(redis, { owner: name, epoch, tail, stream });
  return 'restored';
}

/** The stream's next event after a cursor, as a read of the log tells it. */
export function readAfter({ redis }: State, cursor: number): Event | 'nothing' | 'broken' | 'in_future' {
  const next = redis.log.find(({ id }) => id > cursor);
  if (next !== undefined) return next.previous === cursor ? next : 'broken';
  if (redis.stream.newest > cursor) return 'broken';
  return redis.stream.newest < cursor ? 'in_future' : 'nothing';
}
