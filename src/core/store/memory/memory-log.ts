import { compareLogPositions, type LogPosition } from '../../protocol/wire/event-id.ts';
import { detachBytes, detachedBytes } from '../../util/detached-bytes.ts';
import { SparseMap } from '../../util/sparse-map.ts';
import type { AppendOutcome, LogLimits, NewEvent, PendingCall, ReadOutcome, StoredEvent } from '../event-log.ts';
import { forgottenStream, readOutcomeOf, requireConsecutive, selectEvents } from '../log-rules.ts';
import type { LogState, StreamTail } from '../session-records.ts';

/** A kept event. */
export interface LogEntry {
  readonly event: StoredEvent;
  readonly storedAtMs: number;
}

/** The whole contents of a log. */
export interface LogContents {
  readonly epoch: number;
  readonly tailSeq: number;
  readonly state: LogState;
  /** Ordered by position. */
  readonly entries: Iterable<LogEntry>;
}

/**
 * The events of one session. The outcomes are those of `EventLog`; the caller has checked the session's owner before.
 * The entries are ordered by position: those of a newer epoch follow all of an older one.
 *
 * Bounds: the limits bound the entries, and their bytes are those of the events' data. An event larger than `maxBytes`
 * is stored and evicted at once. The number of tails of open streams is bounded by the session's requests in flight.
 * The tail of an ended stream is removed with its last event; otherwise a session would grow with every call.
 *
 * Consequence: `broken` is reported wherever events are missing. Once an ended stream is evicted completely, only its
 * number shows that it existed. A lower number that never had events is taken for such a stream.
 */
export class MemoryLog {
  /** The bytes of the events that are kept. */
  bytes = 0;
  readonly #limits: LogLimits;
  readonly #entries = new Deque<LogEntry>();
  readonly #tails = new SparseMap<number, StreamTail>(); // an open stream's tail outlives the eviction of its event
  readonly #pending = new PendingTable();
  #epoch: number;
  /** Streams are numbered in order, so a stream up to this number that has no tail was evicted. */
  #newestStream = -1;
  #tailSeq = 0;

  constructor(firstEpoch: number, limits: LogLimits) {
    this.#epoch = firstEpoch;
    this.#limits = limits;
  }

  /** Evicts the events that are over the limits at this time. */
  evict(nowMs: number): void {
    const { maxEvents, maxBytes, maxAgeMs } = this.#limits;
    const entries = this.#entries;
    for (let oldest = entries.at(0); oldest !== undefined; oldest = entries.at(0)) {
      const isOld = nowMs - oldest.storedAtMs > maxAgeMs;
      if (!isOld && entries.length <= maxEvents && this.bytes <= maxBytes) return;
      this.evictOldest();
    }
  }

  /** Evicts the oldest event, for the limits or to make room for other sessions. */
  evictOldest(): void {
    const event = this.#entries.at(0)?.event;
    if (event === undefined) return;
    this.#limits.evicted?.add(1);
    this.bytes -= event.data.length;
    this.#entries.shift();
    const tail = this.#tails.get(event.stream);
    if (tail?.ended && compareLogPositions(tail.newest, event) === 0) this.#tails.delete(event.stream);
  }

  /** Starts a new epoch. The numbers of its events start again. */
  beginEpoch(epoch: number): void {
    this.#epoch = epoch;
    this.#tailSeq = 0;
  }

  /** Returns the current state of the streams. */
  state(): LogState {
    return { tails: new Map(this.#tails), newestStream: this.#newestStream, pending: this.#pending.all() };
  }

  /** Returns everything that the log knows. The events are those of the log itself. */
  contents(): LogContents {
    const entries = Array.from({ length: this.#entries.length }, (_, index) => this.#entries.at(index) as LogEntry);
    return { epoch: this.#epoch, tailSeq: this.#tailSeq, state: this.state(), entries };
  }

  /** Takes the contents of another log into this new one, except what is over the limits at this time. */
  load({ epoch, tailSeq, state, entries }: LogContents, nowMs: number): void {
    for (const { event, storedAtMs } of entries) {
      this.#entries.push({ event: { ...event, data: detachBytes(event.data) }, storedAtMs });
      this.bytes += event.data.length;
    }
    this.restore(epoch, tailSeq, state);
    this.evict(nowMs);
  }

  /**
   * Appends events that were stored before. If events between the tail and these were lost, this is a gap, which the
   * chain of a stream shows to its readers.
   */
  replay(events: readonly NewEvent[], nowMs: number): void {
    const [first] = events;
    if (first === undefined || first.seq <= this.#tailSeq) return;
    this.#tailSeq = first.seq - 1;
    this.append(this.#tailSeq, events, nowMs);
  }

  /** Continues as if this epoch's events up to `tail` had been stored and evicted. Events of older epochs stay. */
  restore(epoch: number, tail: number, state: LogState): void {
    this.#epoch = epoch;
    this.#tailSeq = tail;
    this.#newestStream = state.newestStream;
    this.#tails.clear();
    for (const [stream, known] of state.tails) {
      // The tail of an ended stream is removed with its last event. Without that event the tail would stay for ever.
      if (!known.ended || this.#isKept(known.newest)) this.#tails.set(stream, known);
    }
    this.#pending.replace(state.pending);
  }

  /** Takes time in proportion to the appended and evicted events, however many events are kept. */
  append(expectedTail: number, events: readonly NewEvent[], nowMs: number): AppendOutcome {
    requireConsecutive(expectedTail, events);
    // An earlier attempt stored all or nothing. A tail at or after the end of the batch means that all events are
    // stored. A tail inside the batch cannot come from an attempt of this call.
    if (this.#tailSeq !== expectedTail) {
      return this.#tailSeq >= (events.at(-1)?.seq ?? expectedTail)
        ? { outcome: 'already' }
        : { outcome: 'gap', tail: this.#tailSeq };
    }
    const epoch = this.#epoch;
    const kept = detachedBytes(events.map(({ data }) => data));
    for (let index = 0; index < events.length; index += 1) {
      const event = events[index] as NewEvent;
      const { stream, seq, last } = event;
      const data = kept[index] as Buffer;
      const stored: StoredEvent = { epoch, stream, seq, previous: copyPosition(event.previous), data, last };
      this.#entries.push({ event: stored, storedAtMs: nowMs });
      // A run of events of one stream needs a single tail.
      if (events[index + 1]?.stream !== stream) this.#tails.set(stream, { newest: { epoch, seq }, ended: last });
      this.#newestStream = Math.max(this.#newestStream, stream);
      this.bytes += data.length;
      this.#pending.apply(event);
    }
    this.#tailSeq = events.at(-1)?.seq ?? this.#tailSeq;
    this.evict(nowMs);
    return { outcome: 'stored' };
  }

  /** Finds the start by binary search and scans the session's entries from there on. */
  read(stream: number, after: LogPosition | undefined, limit: number, nowMs: number): ReadOutcome {
    this.evict(nowMs);
    const tail = this.#tails.get(stream);
    if (tail === undefined) {
      // The GET stream, 0, never ends, so its tail is never forgotten.
      if (stream > this.#newestStream || stream === 0) return { outcome: 'unknown_stream' };
      if (after !== undefined && compareLogPositions(after, { epoch: this.#epoch, seq: this.#tailSeq }) > 0)
        return { outcome: 'in_future' };
      return forgottenStream;
    }
    if (after !== undefined && compareLogPositions(after, tail.newest) > 0) return { outcome: 'in_future' };
    const kept = eventsFrom(this.#entries, firstAfter(this.#entries, after));
    return readOutcomeOf(selectEvents(kept, stream, after, Math.max(1, limit)), after, tail);
  }

  #isKept(position: LogPosition): boolean {
    const event = this.#entries.at(firstAfter(this.#entries, position) - 1)?.event;
    return event !== undefined && compareLogPositions(event, position) === 0;
  }
}

/** Yields the events of all streams from an index on. */
function* eventsFrom(entries: Deque<LogEntry>, first: number): Generator<StoredEvent, void> {
  for (let index = first, entry = entries.at(index); entry !== undefined; index += 1, entry = entries.at(index))
    yield entry.event;
}

/** Finds the index of the oldest entry after a position; the log is sorted. */
function firstAfter(entries: Deque<LogEntry>, after: LogPosition | undefined): number {
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

/** Copies only the position: a caller may pass a whole event, whose chain would keep every earlier event alive. */
const copyPosition = (position: LogPosition | undefined): LogPosition | undefined =>
  position === undefined ? undefined : { epoch: position.epoch, seq: position.seq };

/**
 * The requests of one session that have a stream and no answer yet. The limit of requests in flight bounds their
 * number.
 */
class PendingTable {
  /** The requests by the JSON text of the id, which tells 1 from "1". */
  readonly #calls = new SparseMap<string, PendingCall>();

  /**
   * Applies the requests that an event opens and settles. The settled one goes first, since its id is free afterwards.
   */
  apply({ opens = [], settles }: NewEvent): void {
    if (settles !== undefined) this.#calls.delete(JSON.stringify(settles));
    for (const call of opens) this.#open(call);
  }

  /** Returns the requests in the order in which they were opened. */
  all(): PendingCall[] {
    return [...this.#calls.values()];
  }

  replace(calls: readonly PendingCall[]): void {
    this.#calls.clear();
    for (const call of calls) this.#open(call);
  }

  #open(call: PendingCall): void {
    const id = JSON.stringify(call.id);
    this.#calls.delete(id); // moves the id to the end
    this.#calls.set(id, { ...call, text: call.text && detachBytes(call.text) });
  }
}

/** With fewer empty slots in front, closing the gap costs more than it frees. */
const minGap = 64;

/**
 * A list that grows at its end and shrinks at its front, both in constant time, with access by index. `Array.shift`
 * moves all elements of a long array, which makes the eviction of a full log quadratic. Here a head index moves, and
 * the gap is closed once it is half of the array.
 */
class Deque<T> {
  #elements: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#elements.length - this.#head;
  }

  /** The element at an index counted from the oldest; undefined outside of the list. */
  at(index: number): T | undefined {
    return index < 0 ? undefined : this.#elements[this.#head + index];
  }

  push(element: T): void {
    this.#elements.push(element);
  }

  /** Removes and returns the oldest element; undefined if there is none. */
  shift(): T | undefined {
    const head = this.#head;
    if (head === this.#elements.length) return undefined;
    const element = this.#elements[head];
    this.#elements[head] = undefined; // or the array keeps an evicted event alive until the gap is closed
    this.#head += 1;
    if (this.#head >= minGap && this.#head * 2 >= this.#elements.length) {
      this.#elements = this.#elements.slice(this.#head);
      this.#head = 0;
    }
    return element;
  }
}
