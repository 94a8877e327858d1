import { compareLogPositions, type LogPosition } from '../../src/core/protocol/wire/event-id.ts';
import type { LogLimits, NewEvent, PendingCall, ReadOutcome, StoredEvent } from '../../src/core/store/event-log.ts';
import type { LogState, StreamTail } from '../../src/core/store/session-records.ts';

/** Streams of a session that get events at the same time. */
export const streamSlots = 3;

/** An event that was ever appended, and whether it still has to be there. */
interface Remembered {
  readonly event: StoredEvent;
  readonly storedAtMs: number;
  isKept: boolean;
}

/** A session that forgets nothing, so that what may be lost is computed and not remembered in the way of a store. */
export interface ModelSession {
  readonly key: string;
  epoch: number;
  /** The number of the newest event of this epoch. */
  tail: number;
  readonly everything: Remembered[];
  pending: PendingCall[];
  /** The streams that get events; a stream that has ended makes room for a new number. Slot 0 never ends, as stream 0. */
  readonly open: number[];
  nextStream: number;
  nextRequest: number;
  /** What was appended last in this epoch, for a retry. */
  lastBatch: readonly NewEvent[];
}

/** What a random command says of an event. */
export interface ModelDraft {
  readonly slot: number;
  readonly text: string;
  readonly last: boolean;
  readonly opens: boolean;
  readonly settles: boolean;
}

export const createModelSession = (key: string, epoch: number): ModelSession => ({
  ...{ key, epoch, tail: 0, everything: [], pending: [], nextStream: streamSlots, nextRequest: 1, lastBatch: [] },
  open: Array.from({ length: streamSlots }, (_, slot) => slot),
});

/** The next events of a session: numbered, chained by looking at all there ever was, ended streams replaced. */
export function makeEvents(session: ModelSession, tail: number, drafts: readonly ModelDraft[]): NewEvent[] {
  const { epoch } = session;
  const events: NewEvent[] = [];
  for (const { slot, text, last, opens, settles } of drafts) {
    const stream = at(session.open, slot);
    const earlier = [
      ...session.everything.map(({ event }) => event),
      ...events.map((event) => ({ ...event, epoch })),
    ].filter((event) => event.stream === stream);
    const previous = earlier.at(-1);
    const isLast = last && slot !== 0;
    const settled = settles ? session.pending.shift()?.id : undefined;
    events.push({
      stream,
      seq: tail + 1 + events.length,
      previous: previous && { epoch: previous.epoch, seq: previous.seq },
      data: Buffer.from(text),
      last: isLast,
      ...(settled !== undefined && { settles: settled }),
      ...(opens && { opens: [openRequest(session, stream, text)] }),
    });
    if (isLast) {
      session.open[slot] = session.nextStream;
      session.nextStream += 1;
    }
  }
  return events;
}

/** Ids are numbers and strings in turns. */
function openRequest(session: ModelSession, stream: number, text: string): PendingCall {
  const number = session.nextRequest;
  session.nextRequest += 1;
  const id = number % 2 === 0 ? number : String(number);
  const call = { stream, id, method: 'tools/call', text: text === '' ? undefined : Buffer.from(text) };
  session.pending.push(call);
  return call;
}

/** Takes note of stored events. Limits are looked at after the whole batch, so that none of it counts less than another. */
export function remember(session: ModelSession, events: readonly NewEvent[], nowMs: number, limits: LogLimits): void {
  for (const { stream, seq, previous, data, last } of events) {
    const event = { epoch: session.epoch, stream, seq, previous, data, last };
    session.everything.push({ event, storedAtMs: nowMs, isKept: true });
  }
  session.tail += events.length;
  session.lastBatch = events;
  evict(session, nowMs, limits);
}

/** Marks what is over the limits as not kept, oldest first. */
export function evict({ everything }: ModelSession, nowMs: number, limits: LogLimits): void {
  const isOver = (kept: readonly Remembered[], oldest: Remembered): boolean =>
    kept.length > limits.maxEvents ||
    kept.reduce((sum, { event }) => sum + event.data.length, 0) > limits.maxBytes ||
    nowMs - oldest.storedAtMs > limits.maxAgeMs;
  for (const oldest of everything) {
    const kept = everything.filter(({ isKept }) => isKept);
    if (oldest.isKept && isOver(kept, oldest)) oldest.isKept = false;
  }
}

/** What a new owner has to be told; the tails of ended streams are there only as long as an event of theirs is. */
export function expectedState({ everything, pending }: ModelSession): LogState {
  const tails = new Map<number, StreamTail>();
  for (const { event, isKept } of everything) {
    tails.delete(event.stream);
    if (event.last && !isKept) continue;
    tails.set(event.stream, { newest: { epoch: event.epoch, seq: event.seq }, ended: event.last });
  }
  const newestStream = Math.max(-1, ...everything.map(({ event }) => event.stream));
  return { tails, newestStream, pending: [...pending] };
}

/** What a read has to find. */
export function expectedRead(
  session: ModelSession,
  stream: number,
  after: LogPosition | undefined,
  limit: number,
): ReadOutcome {
  const ofStream = session.everything.filter(({ event }) => event.stream === stream);
  const newest = ofStream.at(-1)?.event;
  const isForgotten = newest?.last === true && ofStream.every(({ isKept }) => !isKept);
  if (newest === undefined || isForgotten) return expectedOfForgotten(session, stream, after);
  if (after !== undefined && compareLogPositions(after, newest) > 0) return { outcome: 'in_future' };
  const wanted = ofStream.filter(({ event }) => after === undefined || compareLogPositions(event, after) > 0);
  const kept = wanted.filter(({ isKept }) => isKept).map(({ event }) => event);
  const events = kept.slice(0, Math.max(1, limit));
  return {
    outcome: 'ok',
    events,
    broken: kept.length < wanted.length,
    atTail: events.length === kept.length,
    ended: newest.last,
    newest: { epoch: newest.epoch, seq: newest.seq },
  };
}

function expectedOfForgotten(
  { everything, epoch, tail }: ModelSession,
  stream: number,
  after: LogPosition | undefined,
): ReadOutcome {
  const newestStream = Math.max(-1, ...everything.map(({ event }) => event.stream));
  if (stream === 0 || stream > newestStream) return { outcome: 'unknown_stream' };
  if (after !== undefined && compareLogPositions(after, { epoch, seq: tail }) > 0) return { outcome: 'in_future' };
  return { outcome: 'ok', events: [], broken: true, atTail: true, ended: true, newest: undefined };
}

/** The element of a list that has to be there. */
export function at<T>(list: readonly T[], index: number): T {
  const element = list[index];
  if (element === undefined) throw new Error(`the model has no element ${index}`);
  return element;
}
