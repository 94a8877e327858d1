import { compareLogPositions, type LogPosition } from '../../protocol/wire/event-id.ts';
import { Deque } from '../../util/deque.ts';
import { detachedBytes } from '../../util/detached-bytes.ts';
import { SparseMap } from '../../util/sparse-map.ts';
import type { AppendOutcome, LogLimits, NewEvent, ReadOutcome, StoredEvent } from '../event-log.ts';
import { requireConsecutive } from '../require-consecutive.ts';
import type { LogState, StreamTail } from '../session-records.ts';
import { createPendingTable } from './pending-table.ts';

interface Entry {
  readonly event: StoredEvent;
  readonly storedAtMs: number;
}

/**
 * The events of one session. The outcomes are those of `EventLog`; whose session it is has been decided before. The entries
 * are in the order of their places: a newer epoch's behind all of an older one.
 *
 * Bounds: the entries are bounded by the limits, where bytes are those of the events' data. An event that is over
 * `maxBytes` by itself is stored and evicted at once. The tails of open streams are as many as the session may have
 * requests in flight; the tail of an ended stream goes with its last event, or a session would grow with every call.
 *
 * What that means for `broken`: it is told wherever events are missing. Of an ended stream that is evicted altogether only
 * its number is known to have been one; a number that never had events, but lies below, is taken for such a stream.
 */
export class MemoryLog {
  /** Bytes of the events that are kept. */
  bytes = 0;
  readonly #limits: LogLimits;
  readonly #entries = new Deque<Entry>();
  readonly #tails = new SparseMap<number, StreamTail>(); // known also after the event itself was evicted
  readonly #pending = createPendingTable();
  #epoch: number;
  /** Streams are numbered in order, so one up to here of which nothing is known was evicted. */
  #newestStream = -1;
  #tailSeq = 0;

  constructor(firstEpoch: number, limits: LogLimits) {
    this.#epoch = firstEpoch;
    this.#limits = limits;
  }

  /** Evicts what is over the limits at this time. */
  evict(nowMs: number): void {
    const { maxEvents, maxBytes, maxAgeMs } = this.#limits;
    const entries = this.#entries;
    for (let oldest = entries.at(0); oldest !== undefined; oldest = entries.at(0)) {
      const isOver = entries.length > maxEvents || this.bytes > maxBytes || nowMs - oldest.storedAtMs > maxAgeMs;
      if (!isOver) return;
      this.evictOldest();
    }
  }

  /** Evicts the oldest event, to make room for other sessions. */
  evictOldest(): void {
    const event = this.#entries.shift()?.event;
    if (event === undefined) return;
    this.#limits.onEvicted?.(1);
    this.bytes -= event.data.length;
    const tail = this.#tails.get(event.stream);
    if (tail?.ended && compareLogPositions(tail.newest, event) === 0) this.#tails.delete(event.stream);
  }

  /** From now on events are of this epoch, and their numbers begin anew. */
  beginEpoch(epoch: number): void {
    this.#epoch = epoch;
    this.#tailSeq = 0;
  }

  /** Where the streams stand now. */
  state(): LogState {
    return { tails: new Map(this.#tails), newestStream: this.#newestStream, pending: this.#pending.all() };
  }

  /** Goes on as if the events up to `tail` of this epoch were stored and evicted. What is kept of older epochs stays. */
  restore(epoch: number, tail: number, state: LogState): void {
    this.#epoch = epoch;
    this.#tailSeq = tail;
    this.#newestStream = state.newestStream;
    this.#tails.clear();
    for (const [stream, known] of state.tails) {
      // An ended stream is known as long as its last event is kept, and none may be left to be forgotten with nothing.
      if (!known.ended || this.#isKept(known.newest)) this.#tails.set(stream, known);
    }
    this.#pending.replace(state.pending);
  }

  /** Costs in proportion to the events appended and evicted, however many are kept. */
  append(expectedTail: number, events: readonly NewEvent[], nowMs: number): AppendOutcome {
    requireConsecutive(expectedTail, events);
    // An earlier attempt stored all or nothing, so a tail at or behind the batch's end means that all of it is there.
    // One inside of the batch cannot come from an attempt of this call.
    if (this.#tailSeq !== expectedTail) {
      return this.#tailSeq >= (events.at(-1)?.seq ?? expectedTail)
        ? { outcome: 'already' }
        : { outcome: 'gap', tail: this.#tailSeq };
    }
    const epoch = this.#epoch;
    const kept = detachedBytes(events.map(({ data }) => data));
    for (let index = 0; index < events.length; index += 1) {
      const event = events[index] as NewEvent;
      const { stream, seq, previous, last } = event;
      const data = kept[index] as Buffer;
      this.#entries.push({ event: { epoch, stream, seq, previous: placeOf(previous), data, last }, storedAtMs: nowMs });
      // One tail for a run of events of one stream.
      if (events[index + 1]?.stream !== stream) this.#tails.set(stream, { newest: { epoch, seq }, ended: last });
      this.#newestStream = Math.max(this.#newestStream, stream);
      this.bytes += data.length;
      this.#pending.follow(event);
    }
    this.#tailSeq = events.at(-1)?.seq ?? this.#tailSeq;
    this.evict(nowMs);
    return { outcome: 'stored' };
  }

  /** Finds its start by binary search, then looks at the session's entries from there on. */
  read(stream: number, after: LogPosition | undefined, limit: number, nowMs: number): ReadOutcome {
    this.evict(nowMs);
    const tail = this.#tails.get(stream);
    if (tail === undefined) {
      // The GET stream, 0, never ends, so its tail is never forgotten.
      if (stream > this.#newestStream || stream === 0) return { outcome: 'unknown_stream' };
      if (after !== undefined && compareLogPositions(after, { epoch: this.#epoch, seq: this.#tailSeq }) > 0)
        return { outcome: 'in_future' };
      return { outcome: 'ok', events: [], broken: true, atTail: true, ended: true, newest: undefined };
    }
    if (after !== undefined && compareLogPositions(after, tail.newest) > 0) return { outcome: 'in_future' };
    const events = collect(this.#entries, stream, after, Math.max(1, limit));
    const [first] = events;
    const reached = events.at(-1) ?? after;
    return {
      outcome: 'ok',
      events,
      broken: first === undefined ? !isSame(after, tail.newest) : isBreak(after, first),
      // With no event left there is nothing more to wait for in the log, whatever was lost.
      atTail: first === undefined || isSame(reached, tail.newest),
      ended: tail.ended,
      newest: tail.newest,
    };
  }

  #isKept(place: LogPosition): boolean {
    const event = this.#entries.at(firstAfter(this.#entries, place) - 1)?.event;
    return event !== undefined && compareLogPositions(event, place) === 0;
  }
}

/**
 * The stream's retained events after a place, up to `limit`. Ends before an event whose predecessor was never stored:
 * the next read then begins there and says `broken`, which it can only say of its beginning.
 */
function collect(entries: Deque<Entry>, stream: number, after: LogPosition | undefined, limit: number): StoredEvent[] {
  const events: StoredEvent[] = [];
  for (let index = firstAfter(entries, after); events.length < limit; index += 1) {
    const event = entries.at(index)?.event;
    if (event === undefined) break;
    if (event.stream !== stream) continue;
    if (events.length > 0 && isBreak(events.at(-1), event)) break;
    events.push(event);
  }
  return events;
}

/** The index of the oldest entry after a place; the log is sorted. */
function firstAfter(entries: Deque<Entry>, after: LogPosition | undefined): number {
  if (after === undefined) return 0;
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const event = entries.at(middle)?.event;
    if (event !== undefined && compareLogPositions(event, after) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** True if the stream had an event between this place and `next`. */
const isBreak = (after: LogPosition | undefined, { previous }: StoredEvent): boolean =>
  previous !== undefined && (after === undefined || compareLogPositions(previous, after) > 0);

/** Only the place: a caller may hand in a whole event as a place, and that would keep every event before this one alive. */
const placeOf = (place: LogPosition | undefined): LogPosition | undefined =>
  place === undefined ? undefined : { epoch: place.epoch, seq: place.seq };

const isSame = (a: LogPosition | undefined, b: LogPosition): boolean =>
  a !== undefined && compareLogPositions(a, b) === 0;
