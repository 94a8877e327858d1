import { compareLogPositions, type LogPosition } from '../../protocol/wire/event-id.ts';
import { createLoggedBatch } from '../../reply/event-batch.ts';
import type { EventSink } from '../../reply/reply.ts';
import type { EventLog, StoredEvent } from '../../store/event-log.ts';

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

/** How many events one read of the log returns: enough for throughput, few enough to stay small in memory. */
export const eventsPerRead = 256;

/**
 * How many bytes of a read are written at once. The rest is read again, so that a slow client blocks neither memory nor
 * the event loop.
 */
export const bytesPerWrite = 256 * 1024;

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
  /** Events and bytes stored since the client stopped keeping up. */
  lag = { events: 0, bytes: 0 };
  readonly #options: StreamCursorOptions;
  #state: 'live' | 'reading' | 'blocked' | 'closed' = 'reading';
  #readAgain = false;
  #slowTimer: NodeJS.Timeout | undefined;

  /** @param isLive true if this connection lacks no event of the stream yet, so that nothing has to be read */
  constructor(options: StreamCursorOptions, isLive: boolean) {
    this.stream = options.stream;
    this.cursor = options.after;
    this.#options = options;
    options.sink.onDrain(() => this.#unblock());
    options.sink.onClose(() => this.#onClosed());
    if (isLive) this.#state = 'live';
    else this.#read();
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

  #read(): void {
    this.#catchUp().catch((cause: unknown) => this.#options.onFailed(cause));
  }

  async #catchUp(): Promise<void> {
    const { log, key, stream, sink, onBroken } = this.#options;
    this.#state = 'reading';
    while (this.#state === 'reading') {
      this.#readAgain = false;
      const read = await log.read(key, stream, this.cursor, eventsPerRead);
      if (this.#state !== 'reading') return;
      if (read.outcome !== 'ok') {
        // The stream has no event yet, so there is nothing to catch up with.
        if (!this.#readAgain) return this.#onCaughtUp();
        continue;
      }
      if (read.broken && !onBroken(sink)) return this.close();
      const events = eventsUpTo(read.events, bytesPerWrite);
      if (events.length > 0) this.#write(events, 'replayed');
      else this.cursor = read.newest ?? this.cursor; // a gap that was reported is not reported again
      const atTail = read.atTail && events.length === read.events.length;
      if (atTail && read.ended) return this.close();
      if (atTail && !this.#readAgain && this.#state === 'reading') return this.#onCaughtUp();
    }
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

/** The first events, up to this many bytes, and at least one. */
export function eventsUpTo(events: readonly StoredEvent[], maxBytes: number): readonly StoredEvent[] {
  let bytes = 0;
  const end = events.findIndex(({ data }, index) => {
    bytes += data.length;
    return bytes > maxBytes && index > 0;
  });
  return end < 0 ? events : events.slice(0, end);
}

const follows = (previous: LogPosition | undefined, cursor: LogPosition | undefined): boolean =>
  previous === undefined || cursor === undefined ? previous === cursor : compareLogPositions(previous, cursor) === 0;
