import type { Rules } from './rules.ts';
import type { Event, State } from './state.ts';

/** Says at the client's connection that its request is answered: its answer, a fault that says what is known, a break. */
export function answer(next: State, at: number): void {
  const { client, ghost, processes } = next;
  const exchange = processes[at]?.exchange;
  if (exchange !== undefined) Object.assign(exchange, { step: 'none', to: 0 });
  if (client.at !== at) return;
  client.answers += 1;
  if (client.answers > 1) ghost.fault ||= '[P3] a request was answered twice';
}

/** An event reaches the client, if its connection is still here. */
export function deliver(next: State, at: number, event: Event): void {
  const { client, ghost } = next;
  if (client.at !== at) return;
  const { id, previous, content, isLast } = event;
  if (ghost.everStored[id] !== content) ghost.fault ||= '[P5] an event was sent that is not in the log';
  if (client.seen.includes(content)) ghost.fault ||= '[P4] an event came twice';
  if (previous !== client.cursor) ghost.fault ||= id > client.cursor ? '[P4] a gap was not told' : '[P4] out of order';
  client.cursor = id;
  client.seen = [...client.seen, content];
  if (isLast) answer(next, at);
}

/** The session is said not to exist. `isKnown`: somebody could have known better. */
export function notFound(next: State, at: number, rules: Rules): void {
  const { ghost, processes, client } = next;
  const isKept = processes.some(({ isUp, session }) => isUp && session !== null && !session.hasLapsed);
  if (!ghost.isDeleted && (isKept || !ghost.hasLost)) ghost.fault ||= '[P7] 404 for a session that never ended';
  if (rules.request === 'any') client.isOver = true;
  else answer(next, at);
}
