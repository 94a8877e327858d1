/** What an owner does for the session: requests, the backend, answers, the feed of the stream. */
import { answer, deliver } from './client.ts';
import { canSpeak } from './conditions.ts';
import { say } from './connections.ts';
import { readAfter } from './redis.ts';
import { has, type Rules } from './rules.ts';
import type { Event, Letter, Process, Reader, Session, State } from './state.ts';
import { processOf } from './state.ts';
import type { Add } from './steps.ts';

/** A request goes to the backend. One that is not harmless may go there once. */
export function handOver(next: State, session: Session, rules: Rules): void {
  if (session.call !== 'none' && rules.isHarmless) return; // joins the one that runs
  session.call = 'running';
  next.ghost.handedOver += 1;
  if (next.ghost.handedOver > 1 && !rules.isHarmless) next.ghost.fault ||= '[P3] a call was handed over twice';
}

export function ownerSteps(state: State, index: number, rules: Rules, add: Add): void {
  const process = state.processes[index];
  if (process?.isUp !== true) return;
  const { session } = process;
  const name = 'AB'[index];
  const speaks = canSpeak(process, rules);
  const step = (label: string, change: (next: State, self: Process, session: Session) => void) =>
    add(
      `${name} ${label}`,
      (next) => {
        const self = next.processes[index] as Process;
        change(next, self, self.session as Session);
      },
      { of: index },
    );

  if (session === null) return;
  if (session.call === 'running') step('hears from its backend', (_, self, own) => hear(self, own, index, rules));
  for (const reader of session.readers) {
    if (reader === null) continue;
    const tells = (label: string, said: Event | 'broken' | null): void =>
      step(label, (next, self, own) => tell(next, self, own, reader, said));
    if (session.call === 'answered' && speaks) tells(`answers ${reader.name}`, null);
    const event = rules.request === 'call' ? 'nothing' : feed(state, process, session, reader.cursor, rules);
    if (event === 'nothing') continue;
    tells(event === 'broken' ? `tells ${reader.name} of the break` : `sends ${event.id} to ${reader.name}`, event);
  }
}

/** May it act on a request? */
export function mayServe(state: State, process: Process, rules: Rules): boolean {
  const { session, command, name } = process;
  const isElsewhere = session === null && state.redis.owner !== name && command === null;
  return canSpeak(process, rules) || isElsewhere;
}

/** The readers with this one in the place of its process, unless that has asked again since. */
export const withReader = (readers: Session['readers'], reader: Reader): Session['readers'] =>
  readers.map((old, index) => (index === processOf(reader.name) && (old?.asking ?? 0) <= reader.asking ? reader : old));

/** Gives a reader its answer (null), an event or the break: on the connection here, or to the other instance. */
function tell(next: State, self: Process, session: Session, reader: Reader, said: Event | 'broken' | null): void {
  const index = processOf(self.name);
  const event = said === 'broken' ? null : said;
  const { name, asking } = reader;
  let isReading = true;
  if (processOf(name) !== index) {
    const kind = said === null ? 'answer' : event === null ? 'broken' : 'event';
    isReading = say(next, name, asking, { kind, cursor: 0, event });
  } else if (self.exchange.step === 'sent' && processOf(self.exchange.to) === index) {
    if (event === null) answer(next, index);
    else deliver(next, index, event);
  }
  const left = isReading && event !== null ? { ...reader, cursor: event.id } : null;
  session.readers = session.readers.map((old) => (old === reader ? left : old));
  if (said === null && session.readers.every((old) => old === null)) session.call = 'none';
}

/** What an instance does about a request of the other one. */
export function receiveRequest(
  next: State,
  { session }: Process,
  { name, asking }: Pick<Reader, 'name' | 'asking'>,
  { kind, cursor }: Letter,
  rules: Rules,
): void {
  if (session === null) {
    say(next, name, asking, { kind: 'none', cursor: 0, event: null });
    return;
  }
  if (kind === 'run') handOver(next, session, rules);
  session.readers = withReader(session.readers, { name, asking, cursor });
}

function hear(self: Process, session: Session, index: number, rules: Rules): void {
  if (rules.request === 'call') {
    session.call = 'answered';
    return;
  }
  const seq = session.events.length + 1;
  session.made += 1;
  const isLast = session.made === rules.events;
  const previous = session.events.at(-1)?.id ?? session.base.newest;
  const content = `${'AB'[index]} event ${session.made}`;
  session.events = [...session.events, { id: session.epoch * 10 + seq, previous, content, isLast }];
  if (isLast) session.call = 'none';
  self.session = session;
}

/** What the reader is to get next: an own event that is known to be stored, else what the log has. */
function feed(
  state: State,
  { isCut }: Process,
  session: Session,
  cursor: number,
  rules: Rules,
): Event | 'nothing' | 'broken' {
  const { events, stored, base } = session;
  const known = has(rules, 'storedFirst') ? events.slice(0, stored) : events;
  const own = known.find(({ previous }) => previous === cursor);
  if (own !== undefined) return own;
  if (cursor === (known.at(-1)?.id ?? base.newest) || isCut || state.redis.epoch === 0) return 'nothing';
  const next = readAfter(state, cursor);
  if (next === 'in_future' || next === 'broken') return session.isVerified ? 'broken' : 'nothing';
  return next;
}
