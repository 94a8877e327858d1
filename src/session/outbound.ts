import type { EventLog } from '../store/store.ts';
import { createEventWriter, type EventWriter } from './event-writer.ts';
import { Intake } from './intake.ts';
import type { SessionOptions } from './session-parts.ts';
import { Streams } from './streams.ts';

/** What the way of messages from the server to its client needs of the session. */
export interface OutboundOptions {
  readonly log: EventLog;
  readonly key: string;
  readonly epoch: number;
  readonly limits: SessionOptions;
  /** Brings one line of the server to where it belongs. */
  route(line: Buffer): void;
  /** True if streams begin with a priming event. */
  primes(): boolean;
  /** Stops and starts reading from the server. */
  pause(): void;
  resume(): void;
  /** The log did not take events: the session can no longer be written to. */
  onRefused(cause: Error): void;
  /** A client was told that events are no longer kept. */
  onHistoryLost(): void;
  /** A connection was cut because the log could not be read. */
  onFailed(cause: unknown): void;
}

/**
 * The way of messages from the server to its client: taken in portions, routed, appended to the log, and only then
 * delivered (P5). Each stage holds the one before it back when it is behind (P8).
 */
export class Outbound {
  readonly streams: Streams;
  readonly #writer: EventWriter;
  readonly #intake: Intake;
  /** With a client that lags by half of the log at most, what is under way never evicts what it has not been sent. */
  readonly #portion: { readonly lines: number; readonly bytes: number };
  readonly #limits: SessionOptions;
  #isOpen = false;

  constructor(options: OutboundOptions) {
    const { log, key, epoch, limits, route, primes, pause, resume, onRefused, onHistoryLost, onFailed } = options;
    const { logMaxEvents, logMaxBytes, retryMs, slowReaderMs, streamMaxAgeMs } = limits;
    this.#limits = limits;
    this.#portion = { lines: logMaxEvents / 8, bytes: logMaxBytes / 8 };
    this.#writer = createEventWriter({
      log,
      key,
      epoch,
      onStored: (events) => this.streams.deliver(events),
      onRefused: (outcome, cause) => onRefused(new Error(`the event log answered ${outcome}`, { cause })),
    });
    this.streams = new Streams({
      log,
      key,
      retryMs,
      slowReaderMs,
      streamMaxAgeMs,
      maxLag: { events: logMaxEvents / 2, bytes: logMaxBytes / 2 },
      primes,
      beginning: { epoch, seq: 0 },
      onHistoryLost,
      onFailed,
      onPressure: (isHigh) => this.#intake.hold(isHigh),
    });
    this.#intake = new Intake({ portion: this.#portion, handle: route, flush: () => this.#flushed(), pause, resume });
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
  take(lines: readonly Buffer[]): void {
    this.#intake.take(lines);
  }

  /** Takes nothing more from the server, or goes on. */
  hold(isHeld: boolean): void {
    this.#intake.hold(isHeld);
  }

  /** Adds an event to a stream; it goes out with the next flush. */
  add(stream: number, data: Buffer, last: boolean): void {
    this.#writer.add(stream, data, last);
  }

  /** Stores and delivers what was added. */
  flush(): void {
    if (this.#isOpen) this.#writer.flush();
  }

  /** Takes what the server wrote to its end, without regard to who lags. */
  finish(): void {
    this.#intake.drain();
  }

  /** Stores and delivers what was added, then ends all connections. */
  async close(): Promise<void> {
    this.flush();
    await this.#writer.settled();
    this.streams.closeAll();
  }

  /** A promise to wait for if the log is slower than the server. */
  #flushed(): Promise<void> | undefined {
    this.flush();
    const { events, bytes } = this.#writer.pending;
    const isAhead = events > this.#portion.lines || bytes > this.#portion.bytes;
    return this.#isOpen && isAhead ? this.#writer.settled() : undefined;
  }
}
