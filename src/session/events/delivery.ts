import type { LogPosition } from '../../protocol/wire/event-id.ts';
import type { StoredEvent } from '../../store/event-log.ts';
import type { Registration } from '../../store/session-records.ts';
import type { BackendSupervisor } from '../backend/supervisor.ts';
import type { SessionContext } from '../session-context.ts';
import { BackpressureQueue, type QueueStages, type ServerOutput } from './backpressure.ts';
import { getStream } from './cursor.ts';
import { type EventEffects, EventWriter, type WriteRefusal, type WriterListener } from './event-writer.ts';
import { RepairingLog } from './repairing-log.ts';
import { Streams } from './streams.ts';

/** Receives what a backend reported, in order. */
export interface OutputReceiver {
  /** Routes one message of the server, or notes a state of the backend. */
  receive(output: ServerOutput): void;
}

interface Mark {
  readonly at: LogPosition;
  onStored(at: LogPosition): void;
}

/** An answer that ends the wait of a client, which the log has not taken yet. */
interface Unstored {
  readonly seq: number;
  readonly stream: number;
  /** On the monotonic clock, in milliseconds. */
  readonly since: number;
}

/** A log that does not answer for this long is away, or full. */
const stuckMs = 1_000;

/** An answer waits so long for a log that is away, or full. Then its client gets it without an event id. */
const unstoredMs = 3_000;

/**
 * The way of messages from the server to its client. They are taken in portions, routed, appended to the log, and only
 * then delivered (P5). Each stage holds back the one before it when it falls behind (P8).
 */
export class EventDelivery implements WriterListener, QueueStages {
  readonly streams: Streams;
  readonly #writer: EventWriter;
  readonly #queue: BackpressureQueue;
  /**
   * A client's lag plus two portions under way must never evict events that it has not been sent. The log drops events
   * by eighths, so the lag may be 1/8 and each portion 3/8. A larger portion costs less for each event.
   */
  readonly portion: { readonly messages: number; readonly bytes: number };
  readonly #context: SessionContext;
  readonly #supervisor: BackendSupervisor;
  readonly #receiver: OutputReceiver;
  /** Marks of added events that are not known to be stored, in order. */
  readonly #marks: Mark[] = [];
  /** In order: the last answer of each stream of a POST. The one stream of a client has a log in memory, which never waits. */
  #unstored: Unstored[] = [];
  #added = 0;
  #isOpen = false;

  constructor(context: SessionContext, supervisor: BackendSupervisor, receiver: OutputReceiver) {
    const { maxEvents, maxBytes } = context.limits.logLimits;
    this.#context = context;
    this.#supervisor = supervisor;
    this.#receiver = receiver;
    this.portion = { messages: (maxEvents * 3) / 8, bytes: maxBytes / 8 };
    this.#writer = new EventWriter(context, this);
    context.log.onFailure = () => this.sendUnstored(unstoredMs);
    this.#queue = new BackpressureQueue(this);
    this.streams = new Streams(context, new RepairingLog(context.log, context.epoch, this.#writer), this.#queue);
  }

  onStored(events: readonly StoredEvent[]): void {
    this.#forgetStored((events.at(-1) as StoredEvent).seq);
    this.streams.deliver(events);
    this.#notifyStored();
  }

  onReappended(events: readonly StoredEvent[]): void {
    this.streams.deliver(events);
  }

  /**
   * The log takes no more events from here. Another instance owns the session, the session was ended, or there is a
   * fault.
   */
  onRefused(why: WriteRefusal, cause: unknown): void {
    const context = this.#context;
    if (context.endReason !== undefined) return; // the log refuses events of a session that was removed from it
    if (why === 'fenced') context.end('moved');
    else if (why === 'ended') context.end('deleted');
    else context.fail(new Error(`the event log answered ${why}`, { cause }));
  }

  handle(output: ServerOutput): void {
    this.#receiver.receive(output);
  }

  pause(): void {
    this.#supervisor.pause();
  }

  resume(): void {
    this.#supervisor.resume();
  }

  fail(cause: unknown): void {
    this.#context.fail(cause);
  }

  /** Registers the session and the state of its log again; see `SessionRecords.register`. */
  register(): Promise<Registration> {
    const { tail, log } = this.#writer.recoveryState;
    return this.#context.record.register(tail, log);
  }

  /** From now on events can be appended to the log. Events that were added before have waited for this. */
  open(): void {
    this.#isOpen = true;
    this.flush();
  }

  /**
   * False if nothing more can be kept for later. Events that wait for the log have the log's own limits (P8). The
   * server is not paused then, since the answer that opens the log would wait as well.
   */
  get hasRoom(): boolean {
    const { events, bytes } = this.#writer.pending;
    const { maxEvents, maxBytes } = this.#context.limits.logLimits;
    return this.#isOpen || (events < maxEvents && bytes < maxBytes);
  }

  /** Queues output of the server, in order. */
  take(output: readonly ServerOutput[]): void {
    this.#queue.take(output);
  }

  /** Stops handling the server's messages, or continues. */
  setPaused(isPaused: boolean): void {
    this.#queue.setPaused(isPaused);
  }

  /** Adds an event to a stream; the next flush sends it. */
  add(stream: number, data: Buffer, last: boolean, effects?: EventEffects): void {
    this.#writer.add(stream, data, last, effects);
    this.#added += 1;
    if (effects?.live !== undefined) this.streams.hold(stream, this.#added, effects.live);
    if (last && effects?.settles !== undefined)
      this.#unstored.push({ seq: this.#added, stream, since: performance.now() });
  }

  /** Calls `onStored` with the position of the log, once all events that were added so far are stored. */
  mark(onStored: (at: LogPosition) => void): void {
    const { events } = this.#writer.pending;
    const at = { epoch: this.#context.epoch, seq: this.#writer.stored.tail + events };
    this.#marks.push({ at, onStored });
    if (events === 0) this.#notifyStored();
  }

  #notifyStored(): void {
    const { tail } = this.#writer.stored;
    while ((this.#marks[0]?.at.seq ?? tail + 1) <= tail) {
      const [{ at, onStored }] = this.#marks.splice(0, 1) as [Mark];
      onStored(at);
    }
  }

  /** Stores and delivers the added events. */
  flush(): void {
    if (this.#isOpen) this.#writer.flush();
  }

  /** As `EventWriter.whenStored`. */
  whenStored(onStored: (isStored: boolean) => void): void {
    this.#writer.whenStored(onStored);
  }

  /** The store may have lost confirmed events; see `EventWriter.check`. */
  check(): void {
    this.#writer.check();
  }

  /**
   * Sends the client of a stream an answer that the log does not take: without an event id, and last on this
   * connection. Does nothing if the log takes the answer in time, as the log of a one-stream client always does.
   */
  sendUnlogged(stream: number, text: string): void {
    if (stream === getStream) return;
    const send = (): void => this.streams.sendUnlogged(stream, [Buffer.from(text)]);
    const timer = setTimeout(send, Math.max(0, stuckMs - this.#writer.waitingMs));
    this.#writer.whenStored(() => clearTimeout(timer));
  }

  /**
   * Sends the clients of streams whose answers have waited this long for the log all that they lack, without event ids:
   * no call waits for an answer that has arrived. The connection of a POST ends with it. The log gets these events when
   * it takes some again, for a client that loses its connection meanwhile.
   */
  sendUnstored(afterMs: number): void {
    const latest = performance.now() - afterMs;
    while ((this.#unstored[0]?.since ?? Number.POSITIVE_INFINITY) <= latest) {
      const [{ stream }] = this.#unstored.splice(0, 1) as [Unstored];
      this.streams.sendUnstored(stream, (after) => this.#writer.unstoredEvents(stream, after));
    }
  }

  #forgetStored(stored: number): void {
    const firstUnstored = this.#unstored.findIndex(({ seq }) => seq > stored);
    if (this.#unstored.length > 0) this.#unstored = firstUnstored === -1 ? [] : this.#unstored.slice(firstUnstored);
  }

  /** Handles the rest of the server's output, regardless of lagging clients. */
  finish(): void {
    this.#queue.drain();
  }

  /**
   * Stores and delivers the added events, then ends all connections.
   * @param canResume true if their clients can continue on another instance
   */
  async close(canResume: boolean): Promise<void> {
    this.flush();
    await this.#writer.settled();
    this.streams.closeAll(canResume);
  }

  /** Ends all connections because another instance owns the session. Their clients continue there. */
  abandon(): void {
    this.streams.closeAll();
  }

  /** A promise to wait for if the log is slower than the server. */
  storePortion(): Promise<void> | undefined {
    this.flush();
    if (!this.#isOpen || !this.#isAhead) return undefined;
    this.#writer.pipeline();
    return this.#waitWhileAhead();
  }

  /**
   * Two portions may be on their way to the log. The log stores one while the outcome of the other one is applied and
   * the next one is handled, so that neither side waits for the other.
   */
  async #waitWhileAhead(): Promise<void> {
    for (let step = this.#writer.appended(); this.#isAhead && step !== undefined; step = this.#writer.appended()) {
      await step;
    }
  }

  get #isAhead(): boolean {
    const { events, bytes } = this.#writer.pending;
    return events > this.portion.messages || bytes > this.portion.bytes;
  }
}
