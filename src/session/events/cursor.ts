import { compareLogPositions, type LogPosition } from '../../protocol/wire/event-id.ts';
import { createLoggedBatch } from '../../reply/event-batch.ts';
import type { EventSink } from '../../reply/reply.ts';
import type { EventLog, ReadOutcome, StoredEvent } from '../../store/event-log.ts';
import { type LogPage, readPages } from '../../store/read-pages.ts';

/** Options of `StreamCursor`. */
export interface StreamCursorOptions {
  readonly log: EventLog;
  readonly key: string;
  readonly stream: number;
  /** The position of the last event that the client has; undefined to begin with the stream's oldest. */
  readonly after: LogPosition | undefined;
  readonly sink: EventSink;
  /** The suffix of its event ids; see `EventId.requests`. */
  readonly requests?: string | undefined;
  /** The reconnection time in priming events. */
  readonly retryMs: number;
  /** How long a client may stop reading before its connection is cut. It can resume from the log (P8). */
  readonly slowReaderMs: number;
  /** Events that the client has not seen are no longer kept. Return `true` to continue with the oldest kept event. */
  onBroken(sink: EventSink): boolean;
  /** A client that lagged has caught up with the log. */
  onCaughtUp(): void;
  /** This many events were written, live or from the log. */
  onWritten?(count: number, source: 'live' | 'replayed'): void;
  /** The log could not be read, so this cursor is of no further use. */
  onFailed(cause: unknown): void;
  /** The connection is gone; called once. */
  onClosed(): void;
}

/**
 * Sends one stream's events to one connection, in order, without gap or duplicate (P4). The cursor knows the position
 * of the last written event. An event that follows directly is written at once. After a resume, or if the client was
 * too slow, events are read from the log until the cursor has caught up. No event waits in memory for a slow client.
 */
export class StreamCursor {
  readonly stream: number;
  /** On the monotonic clock, in milliseconds. */
  readonly openedAt = performance.now();
  /** The position of the last event written to the connection. */
  cursor: LogPosition | undefined;
  /** True once the client has closed the connection, or a slow client was cut off. */
  isClosedByClient = false;
  /** Events and bytes stored since the client stopped keeping up. */
  lag = { events: 0, bytes: 0 };
  readonly #options: StreamCursorOptions;
  #state: 'live' | 'reading' | 'blocked' | 'closed' = 'reading';
  #readAgain = false;
  #slowTimer: NodeJS.Timeout | undefined;

  /**
   * @param start `live` if this connection lacks no event of the stream yet, so that nothing has to be read; or the
   *   outcome of a read after the position, as of now
   */
  constructor(options: StreamCursorOptions, start?: 'live' | ReadOutcome) {
    this.stream = options.stream;
    this.cursor = options.after;
    this.#options = options;
    options.sink.onDrain(() => this.#unblock());
    options.sink.onClose(() => {
      this.isClosedByClient = this.#state !== 'closed';
      this.#onClosed();
    });
    if (start === 'live') this.#state = 'live';
    else this.#read(start);
  }

  get sink(): EventSink {
    return this.#options.sink;
  }

  /** Receives events of this stream that were just stored. */
  push(events: readonly StoredEvent[]): void {
    if (this.#state === 'live' && follows(events[0]?.previous, this.cursor)) {
      this.#write(events, 'live');
      return;
    }
    if (this.#state === 'closed') return;
    this.lag.events += events.length;
    for (const event of events) this.lag.bytes += event.data.length;
    this.#readAgain = true;
    if (this.#state === 'live') this.#read();
  }

  /** Ends the connection in order. */
  close(): void {
    if (this.#state === 'closed') return;
    this.#options.sink.end();
    this.#onClosed();
  }

  #read(first?: ReadOutcome): void {
    this.#catchUp(first).catch((cause: unknown) => this.#options.onFailed(cause));
  }

  async #catchUp(first: ReadOutcome | undefined): Promise<void> {
    const { log, key, stream } = this.#options;
    this.#state = 'reading';
    let known = first;
    do {
      this.#readAgain = false;
      for await (const page of readPages(log, key, stream, this.cursor, known)) {
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
    if (broken && !this.#options.onBroken(this.sink)) {
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
    this.lag = { events: 0, bytes: 0 };
    this.#options.onCaughtUp();
  }

  #write(events: readonly StoredEvent[], source: 'live' | 'replayed'): void {
    const newest = events.at(-1);
    if (newest === undefined) return;
    const { sink, requests, retryMs, slowReaderMs } = this.#options;
    const { epoch, seq } = newest;
    this.#options.onWritten?.(events.length, source);
    const keepsUp = sink.write(createLoggedBatch(events, retryMs, requests));
    this.cursor = { epoch, seq };
    if (newest.last) this.close();
    else if (!keepsUp && this.#state !== 'closed') {
      this.#state = 'blocked';
      this.#slowTimer = setTimeout(() => sink.cut(), slowReaderMs);
    }
  }

  #unblock(): void {
    if (this.#state !== 'blocked') return;
    clearTimeout(this.#slowTimer);
    this.#read();
  }

  #onClosed(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    clearTimeout(this.#slowTimer);
    this.#options.onClosed();
  }
}

const follows = (previous: LogPosition | undefined, cursor: LogPosition | undefined): boolean =>
  previous === undefined || cursor === undefined ? previous === cursor : compareLogPositions(previous, cursor) === 0;
