import { faultMessage, type RequestId } from '../../protocol/faults.ts';
import type { LogPosition } from '../../protocol/wire/event-id.ts';
import type { EventLog, StoredEvent } from '../../store/event-log.ts';
import type { LogState, Registration } from '../../store/session-records.ts';
import type { StreamObserver } from '../session-observer.ts';
import type { SessionOptions } from '../session-options.ts';
import { BackpressureQueue, type ServerLine } from './backpressure.ts';
import { type EventEffects, EventWriter, type WriteRefusal } from './event-writer.ts';
import { repairingLog } from './repairing-log.ts';
import { getStream, Streams } from './streams.ts';

/** What the way of messages from the server to its client needs of the session. */
export interface EventDeliveryOptions {
  readonly log: EventLog;
  readonly key: string;
  readonly epoch: number;
  readonly limits: SessionOptions;
  /** What earlier owners left, and how much of the GET stream they had delivered; nothing for a new session. */
  readonly earlier?: LogState | undefined;
  readonly getCursor?: LogPosition | undefined;
  /** So much of the GET stream was delivered to a listener that is gone. */
  onGetCursor(cursor: LogPosition | undefined): void;
  /** Brings one line of the server to where it belongs. */
  route(line: ServerLine): void;
  /** The client hears everything on its GET stream; see `StreamsOptions`. */
  readonly isOneStream?: boolean;
  /** See `StreamsOptions`. */
  readonly observer?: StreamObserver | undefined;
  /** True if streams begin with a priming event. */
  primes(): boolean;
  /** Stops and starts reading from the server. */
  pause(): void;
  resume(): void;
  /** The log does not know the session any more: says what it is again. */
  register(): Promise<Registration>;
  /** The log did not take events: the session can no longer be written to from here. */
  onRefused(why: WriteRefusal, cause: unknown): void;
  /** A client was told that events are no longer kept. */
  onHistoryLost(): void;
  /** A connection was cut because the log could not be read. */
  /** A message of the server could not be handled: the session cannot go on. */
  onFault(cause: unknown): void;
  onFailed(cause: unknown): void;
}

interface Mark {
  readonly at: LogPosition;
  onStored(at: LogPosition): void;
}

/** An answer that the log has not taken yet. */
interface Unstored {
  readonly seq: number;
  readonly stream: number;
  readonly id: RequestId;
  /** By the monotonic clock, in milliseconds. */
  readonly since: number;
}

/** A log that does not answer for so long is away, or full. */
const stuckMs = 1_000;

/**
 * The way of messages from the server to its client: taken in portions, routed, appended to the log, and only then
 * delivered (P5). Each stage holds the one before it back when it is behind (P8).
 */
export class EventDelivery {
  readonly streams: Streams;
  readonly #writer: EventWriter;
  readonly #intake: BackpressureQueue;
  /**
   * What a client may lag and two portions under way never evict what it has not been sent: 1/8 and twice 3/8 of what the log
   * keeps, which it drops by eighths. A larger portion costs less for each event.
   */
  readonly #portion: { readonly lines: number; readonly bytes: number };
  readonly #limits: SessionOptions;
  readonly #epoch: number;
  /** Of what was added and is not known to be stored, in order. */
  readonly #marks: Mark[] = [];
  /** In order; a client's only stream is not looked at, which others' answers need. */
  #unstored: Unstored[] = [];
  #added = 0;
  #isOpen = false;

  constructor(options: EventDeliveryOptions) {
    const { log, key, epoch, limits, earlier, getCursor, isOneStream = false, route, primes, pause, resume } = options;
    const { observer, register, onRefused, onHistoryLost, onFailed } = options;
    const { logMaxEvents, logMaxBytes, retryMs, slowReaderMs, streamMaxAgeMs } = limits;
    this.#limits = limits;
    this.#epoch = epoch;
    this.#portion = { lines: (logMaxEvents * 3) / 8, bytes: logMaxBytes / 8 };
    this.#writer = new EventWriter({
      log,
      key,
      epoch,
      ...(earlier && { earlier }),
      onStored: (events) => {
        this.#forget((events.at(-1) as StoredEvent).seq);
        this.streams.deliver(events);
        this.#tellStored();
      },
      onReappended: (events) => this.streams.deliver(events),
      register,
      onRefused,
    });
    this.streams = new Streams({
      log: repairingLog(log, epoch, () => this.#writer),
      key,
      retryMs,
      slowReaderMs,
      streamMaxAgeMs,
      maxLag: { events: logMaxEvents / 8, bytes: logMaxBytes / 2 },
      ...{ isOneStream, primes, observer },
      beginning: { epoch, seq: 0 },
      ...(earlier && { earlier: { newestStream: earlier.newestStream, ids: idsOf(earlier) } }),
      getCursor,
      onGetCursor: options.onGetCursor,
      onHistoryLost,
      onFailed,
      onPressure: (isHigh) => this.#intake.setPaused(isHigh),
    });
    this.#intake = new BackpressureQueue({
      ...{ portion: this.#portion, handle: route, pause, resume },
      flush: () => this.#flushed(),
      onFault: options.onFault,
    });
  }

  /** From now on there is a log to append to; what was added before waits until here. */
  open(): void {
    this.#isOpen = true;
    this.flush();
  }

  /**
   * False if nothing more can be kept for later: before there is a log, what waits for it has the log's limits (P8). The
   * server is not held back then, since the answer that opens the log would wait as well.
   */
  get hasRoom(): boolean {
    const { events, bytes } = this.#writer.pending;
    return this.#isOpen || (events < this.#limits.logMaxEvents && bytes < this.#limits.logMaxBytes);
  }

  /** Takes lines of the server, in order. */
  take(lines: readonly ServerLine[]): void {
    this.#intake.take(lines);
  }

  /** Takes nothing more from the server, or goes on. */
  setPaused(isHeld: boolean): void {
    this.#intake.setPaused(isHeld);
  }

  /** Adds an event to a stream; it goes out with the next flush. */
  add(stream: number, data: Buffer, last: boolean, effects?: EventEffects): void {
    this.#writer.add(stream, data, last, effects);
    this.#added += 1;
    const id = effects?.settles;
    if (id !== undefined && stream !== getStream)
      this.#unstored.push({ seq: this.#added, stream, id, since: performance.now() });
  }

  /** What a store that has lost its data is told of the log. */
  get recoveryState(): EventWriter['recoveryState'] {
    return this.#writer.recoveryState;
  }

  /** Where the log stands once all that was added so far is stored; `onStored` is called then. */
  mark(onStored: (at: LogPosition) => void): void {
    const { events } = this.#writer.pending;
    const at = { epoch: this.#epoch, seq: this.#writer.stored.tail + events };
    this.#marks.push({ at, onStored });
    if (events === 0) this.#tellStored();
  }

  #tellStored(): void {
    const { tail } = this.#writer.stored;
    while ((this.#marks[0]?.at.seq ?? tail + 1) <= tail) {
      const [{ at, onStored }] = this.#marks.splice(0, 1) as [Mark];
      onStored(at);
    }
  }

  /** Stores and delivers what was added. */
  flush(): void {
    if (this.#isOpen) this.#writer.flush();
  }

  /** As `EventWriter.whenStored`. */
  whenStored(tell: (isStored: boolean) => void): void {
    this.#writer.whenStored(tell);
  }

  /** The store may have lost what it had confirmed; see `EventWriter.check`. */
  check(): void {
    this.#writer.check();
  }

  /**
   * Tells the client of a stream what the log does not take: without an event id, and as the last thing that it hears on
   * this connection. Does nothing if the log takes it in time, nor to a client's only stream, which others' answers need.
   */
  sendUnlogged(stream: number, text: string): void {
    if (stream === getStream) return;
    const tell = (): void => this.streams.sendUnlogged(stream, text);
    const timer = setTimeout(tell, Math.max(0, stuckMs - this.#writer.waitingMs));
    this.#writer.whenStored(() => clearTimeout(timer));
  }

  /** Tells the same of answers that have waited for the log for so long: whether they will be had is not known (P7). */
  failUnstored(afterMs: number): void {
    const until = performance.now() - afterMs;
    while ((this.#unstored[0]?.since ?? Number.POSITIVE_INFINITY) <= until) {
      const [{ stream, id }] = this.#unstored.splice(0, 1) as [Unstored];
      this.streams.sendUnlogged(stream, faultMessage('outcome_unknown', id));
    }
  }

  #forget(stored: number): void {
    const left = this.#unstored.findIndex(({ seq }) => seq > stored);
    if (this.#unstored.length > 0) this.#unstored = left === -1 ? [] : this.#unstored.slice(left);
  }

  /** Takes what the server wrote to its end, without regard to who lags. */
  finish(): void {
    this.#intake.drain();
  }

  /** Stores and delivers what was added, then ends all connections; `goOn` if their clients can go on elsewhere. */
  async close(goOn: boolean): Promise<void> {
    this.flush();
    await this.#writer.settled();
    this.streams.closeAll(goOn);
  }

  /** Ends all connections, for clients to go on elsewhere: another instance has the session. */
  abandon(): void {
    this.streams.closeAll();
  }

  /** A promise to wait for if the log is slower than the server. */
  #flushed(): Promise<void> | undefined {
    this.flush();
    return this.#isOpen && this.#isAhead ? this.#whileAhead() : undefined;
  }

  /** The next portion is handled while the last one is on its way to the log: neither waits for the other. */
  async #whileAhead(): Promise<void> {
    for (let step = this.#writer.appended(); this.#isAhead && step !== undefined; step = this.#writer.appended()) {
      await step;
    }
  }

  get #isAhead(): boolean {
    const { events, bytes } = this.#writer.pending;
    return events > this.#portion.lines || bytes > this.#portion.bytes;
  }
}

/** Which requests the streams of an earlier owner answer. */
function idsOf({ pending }: LogState): ReadonlyMap<number, readonly RequestId[]> {
  const ids = new Map<number, RequestId[]>();
  for (const { stream, id } of pending) ids.set(stream, [...(ids.get(stream) ?? []), id]);
  return ids;
}
