import type { Message } from '../../protocol/message/message.ts';
import { compareLogPositions, type EventId, type LogPosition } from '../../protocol/wire/event-id.ts';
import type { LoggedEvent } from '../../protocol/wire/sse.ts';
import { createLoggedBatch, createMessageBatch, type ReadEvent } from '../../reply/event-batch.ts';
import type { EventSink } from '../../reply/reply.ts';
import type { EventLog, ReadOutcome, StoredEvent } from '../../store/event-log.ts';
import { type LogPage, readPages } from '../../store/read-pages.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import type { SessionCore } from '../session-core.ts';

/** How streams read the log: `maxWaitMs` limits the wait for a store that is away. */
export interface RepairedLog {
  read(...args: [...Parameters<EventLog['read']>, maxWaitMs?: number]): Promise<ReadOutcome>;
}

/** The streams of the session, as one of their cursors sees them. */
export interface CursorOwner {
  readonly log: RepairedLog;
  readonly session: SessionCore;
  /** Events that the client has not seen are no longer kept. Returns `true` to continue with the oldest kept event. */
  reportBroken(cursor: StreamCursor): boolean;
  /** A client that lagged has caught up with the log. */
  measurePressure(): void;
  /** The log could not be read, so this cursor is of no further use. */
  endFailed(cursor: StreamCursor, cause: unknown): void;
  /** The connection of this cursor is gone; called once. */
  detach(cursor: StreamCursor): void;
}

/**
 * Sends one stream's events to one connection, in order, without gap or duplicate (P4). The cursor knows the position
 * of the last written event. An event that follows directly is written at once. After a resume, or if the client was
 * too slow, events are read from the log until the cursor has caught up. No event waits in memory for a slow client,
 * unless it is too large for the log.
 */
export class StreamCursor {
  readonly stream: number;
  readonly sink: EventSink;
  /** The suffix of its event ids; see `EventId.requests`. */
  readonly requests: string | undefined;
  /** On the monotonic clock, in milliseconds. */
  readonly openedAt = performance.now();
  /** The position of the last event written to the connection. */
  cursor: LogPosition | undefined;
  /** True once the client has closed the connection, or a slow client was cut off. */
  isClosedByClient = false;
  /** True once the client was cut off because it did not read. */
  isTooSlow = false;
  /** Events and bytes stored since the client stopped keeping up. */
  lagEvents = 0;
  lagBytes = 0;
  /** Messages for this connection in place of what the log has, by the numbers of their events; see `hold`. */
  #held: Map<number, { readonly epoch: number; readonly message: Message }> | undefined;
  /** Ends an old connection; set by the owner. */
  ageTimer: NodeJS.Timeout | undefined;
  readonly #streams: CursorOwner;
  #state: 'live' | 'reading' | 'blocked' | 'closed' = 'reading';
  #readAgain = false;
  #slowTimer: TimeLimit | undefined;

  /**
   * @param requests the suffix of the stream's event ids, if the client did not say it
   * @param after the position of the last event that the client has; undefined to begin with the stream's oldest
   * @param start `live` if this connection lacks no event of the stream yet, so that nothing has to be read; or the
   *   outcome of a read after the position, as of now
   */
  constructor(
    streams: CursorOwner,
    stream: number,
    sink: EventSink,
    requests: string | undefined,
    after: Omit<EventId, 'stream'> | undefined,
    start: 'live' | ReadOutcome | undefined,
  ) {
    this.stream = stream;
    this.sink = sink;
    this.requests = after?.requests ?? requests;
    this.cursor = after && { epoch: after.epoch, seq: after.seq };
    this.#streams = streams;
    sink.onDrain(() => this.#unblock());
    sink.onClose(() => {
      this.isClosedByClient = this.#state !== 'closed';
      this.#onClosed();
    });
    if (start === 'live') this.#state = 'live';
    else this.#read(start);
  }

  /**
   * Takes the message of an event, which replaces what the log has, until it is written or the connection closes. Large
   * ones are answers to calls in flight, and a client that does not read is cut off. A reader in this process lags only
   * while it reads the log, and then the server is paused (P8).
   */
  hold({ epoch, seq }: LogPosition, message: Message): void {
    if (this.#state === 'closed') return;
    this.#held ??= new Map();
    this.#held.set(seq, { epoch, message });
  }

  /** True if the connection has all events of the stream that are stored. */
  get isCurrent(): boolean {
    return this.#state === 'live';
  }

  /** Receives events of this stream that were just stored. */
  push(events: readonly StoredEvent[]): void {
    if (this.#state === 'live' && follows(events[0]?.previous, this.cursor)) {
      this.#write(events, 'live');
      return;
    }
    if (this.#state === 'closed') return;
    this.lagEvents += events.length;
    for (const { data } of events) this.lagBytes += data.length;
    this.#readAgain = true;
    if (this.#state === 'live') this.#read();
  }

  /**
   * Sends events that the log has not taken yet, without event ids. The connection does not get them again once they are
   * stored: they are before its position then.
   */
  sendUnstored(events: readonly StoredEvent[]): void {
    const newest = events.at(-1);
    if (newest === undefined || this.#state !== 'live') return;
    const texts = events.map((event) => this.#heldFor(event)?.text ?? event.data).filter(({ length }) => length > 0);
    this.#streams.session.parts.telemetry.delivered.live.add(texts.length);
    this.#written(newest, this.sink.write(createMessageBatch(...texts)));
  }

  /** Ends the connection in order. */
  close(): void {
    if (this.#state === 'closed') return;
    // First: the end of a connection can end its session, which closes its cursors.
    this.#onClosed();
    this.sink.end();
  }

  #read(first?: ReadOutcome): void {
    this.#catchUp(first).catch((cause: unknown) => this.#streams.endFailed(this, cause));
  }

  async #catchUp(first: ReadOutcome | undefined): Promise<void> {
    const { log, session } = this.#streams;
    this.#state = 'reading';
    let known = first;
    do {
      this.#readAgain = false;
      for await (const page of readPages(log, session.key, this.stream, this.cursor, known)) {
        if (this.#state !== 'reading') return;
        // Another outcome means that the stream has no event yet, so there is nothing to catch up with.
        if (page.outcome === 'ok' && !this.#writePage(page)) return;
        if ((page.outcome !== 'ok' || page.atTail) && !this.#readAgain) return this.#onCaughtUp();
      }
      known = undefined;
    } while (this.#state === 'reading');
  }

  /** Writes a page of the log. Returns true if the client can take the next one. */
  #writePage(page: LogPage): boolean {
    const { events, broken, atTail, ended, newest } = page;
    if (broken && !this.#streams.reportBroken(this)) {
      this.close();
      return false;
    }
    if (events.length > 0) this.#write(events, 'replayed');
    else this.cursor = newest ?? this.cursor; // a gap that was reported is not reported again
    if (atTail && ended) this.close();
    return this.#state === 'reading';
  }

  #onCaughtUp(): void {
    this.#state = 'live';
    this.lagEvents = 0;
    this.lagBytes = 0;
    this.#streams.measurePressure();
  }

  #write(events: readonly StoredEvent[], source: 'live' | 'replayed'): void {
    const newest = events.at(-1);
    if (newest === undefined) return;
    const { limits, parts } = this.#streams.session;
    parts.telemetry.delivered[source].add(events.length);
    const own = this.#held === undefined ? events : events.map((event) => withMessage(event, this.#heldFor(event)));
    this.#written(newest, this.sink.write(createLoggedBatch(own, limits.reconnectDelayMs, this.requests)));
  }

  /** Events were written, up to this one. */
  #written({ epoch, seq, last }: StoredEvent, keepsUp: boolean): void {
    this.cursor = { epoch, seq };
    if (last) this.close();
    else if (!keepsUp && this.#state !== 'closed') {
      this.#state = 'blocked';
      // It can resume from the log (P8).
      this.#slowTimer = new TimeLimit(() => this.#cutOff(), this.#streams.session.limits.slowReaderMs);
    }
  }

  #cutOff(): void {
    this.isTooSlow = true;
    this.sink.cut();
  }

  /** The message that was kept for an event. It is needed once. */
  #heldFor({ epoch, seq }: StoredEvent): Message | undefined {
    const held = this.#held?.get(seq);
    if (held?.epoch !== epoch) return undefined;
    this.#held?.delete(seq);
    return held.message;
  }

  #unblock(): void {
    if (this.#state !== 'blocked') return;
    this.#slowTimer?.clear();
    this.#read();
  }

  #onClosed(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#held = undefined;
    this.#slowTimer?.clear();
    clearTimeout(this.ageTimer);
    this.#streams.detach(this);
  }
}

/** A stored event with the message that was kept for it. */
const withMessage = (event: StoredEvent, message: Message | undefined): LoggedEvent & ReadEvent =>
  message === undefined ? event : { ...event, data: message.text, message };

const follows = (previous: LogPosition | undefined, cursor: LogPosition | undefined): boolean =>
  previous === undefined || cursor === undefined ? previous === cursor : compareLogPositions(previous, cursor) === 0;
