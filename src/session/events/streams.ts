import { faultMessage, type RequestId } from '../../protocol/faults.ts';
import {
  type EventId,
  finalSeq,
  formatRequests,
  type LogPosition,
  readRequestIds,
} from '../../protocol/wire/event-id.ts';
import {
  createFinalBatch,
  createMessageBatch,
  createPrimingBatch,
  createRetryBatch,
  gapBatch,
} from '../../reply/event-batch.ts';
import type { EventSink, Reply } from '../../reply/reply.ts';
import type { EventLog, ReadOutcome, StoredEvent } from '../../store/event-log.ts';
import { eventsPerRead } from '../../store/read-pages.ts';
import { SparseMap } from '../../util/sparse-map.ts';
import type { ResumeOutcome, SessionName, SessionTelemetry } from '../session-events.ts';
import { StreamCursor } from './cursor.ts';

/** The number of the standalone GET stream; the streams of POSTs count up from 1. */
export const getStream = 0;

/** Clients of an instance that stops come back spread over this time. */
export const returnWindowMs = 3_000;

/** Clients of an instance that is cut off from its store go elsewhere spread over this time. */
export const strandedReturnMs = 250;

/** For how many streams the answered requests are remembered. */
const maxKnownStreams = 1_000;

/** Options of `Streams`. */
export interface StreamsOptions {
  readonly log: EventLog;
  readonly key: string;
  readonly retryMs: number;
  readonly slowReaderMs: number;
  /** A stream is ended after about this time, so that a dead connection is found. Its client resumes it. */
  readonly streamMaxAgeMs: number;
  /** The server is paused while a client lags by more than this. */
  readonly maxLag: { readonly events: number; readonly bytes: number };
  /** The position before the first event of this owner. */
  readonly beginning: LogPosition;
  /** The state of an earlier owner: its newest stream, and the requests that its streams answer. */
  readonly earlier?: { readonly newestStream: number; readonly ids: ReadonlyMap<number, readonly RequestId[]> };
  /** How far the GET stream was delivered, for a listener without an event id. */
  readonly getCursor?: LogPosition | undefined;
  /** The GET stream was delivered up to this position to a listener that is gone. */
  onGetCursor(cursor: LogPosition | undefined): void;
  /**
   * The client gets everything on its GET stream, and may not reconnect. To lose the stream is to lose the session, so
   * the stream has no maximum age, and stays open until the end of a drain.
   */
  readonly isOneStream?: boolean;
  readonly name: SessionName;
  /** Reports resumes and counts deliveries. */
  readonly telemetry: SessionTelemetry;
  /** True if streams begin with a priming event; known once `initialize` is answered. */
  primes(): boolean;
  /** A client was told that events which it lacks are no longer kept. */
  onHistoryLost(): void;
  /** The log could not be read. The connection was cut, and its client can resume. */
  onFailed(cause: unknown): void;
  /** A client lags so far behind that the server must be paused, or none does any more. */
  onPressure(isHigh: boolean): void;
}

/** The streams of one session and the connections that they feed, at most one for each stream. */
export class Streams {
  readonly #options: StreamsOptions;
  readonly #cursors = new Map<number, StreamCursor>();
  /** The requests that the newest streams answer, for clients whose answer is no longer kept. */
  readonly #ids: SparseMap<number, readonly RequestId[]>;
  #next: number;
  #getCursor: LogPosition | undefined;
  /** Since when the GET stream has no listener, on the monotonic clock in milliseconds. */
  #unreadSince = performance.now();
  /** True if a client may have listened to the GET stream, here or at an earlier owner. */
  #hadGet: boolean;
  /** True if the newest listener closed the GET stream itself. */
  #hasLeft = false;
  #pressureIsHigh = false;
  /** How often events were delivered. A read of the log that began before the latest delivery may lack events. */
  #deliveries = 0;
  /** The session has ended: new connections are closed at once, like the existing ones. */
  #isClosed = false;

  constructor(options: StreamsOptions) {
    this.#options = options;
    this.#ids = new SparseMap(options.earlier?.ids);
    this.#next = firstStreamOf(options);
    this.#getCursor = options.getCursor;
    this.#hadGet = options.earlier !== undefined;
  }

  /** True if a client could not resume its stream elsewhere: it has no event id yet, or may not reconnect. */
  get hasUnresumableClients(): boolean {
    const { isOneStream, primes } = this.#options;
    const isUnresumable = ({ sink, cursor }: StreamCursor) =>
      isOneStream ? sink.handOver === undefined : cursor === undefined && !primes();
    return [...this.#cursors.values()].some(isUnresumable);
  }

  /** How long the GET stream has had no listener, in milliseconds; 0 while it has one. */
  get unreadGetMs(): number {
    return this.hasGet ? 0 : performance.now() - this.#unreadSince;
  }

  /**
   * How long ago the client closed its GET stream, in milliseconds. Undefined if the client listens, never listened
   * here, or was cut off by the gateway.
   */
  get leftMs(): number | undefined {
    return this.#hasLeft && !this.hasGet ? this.unreadGetMs : undefined;
  }

  /** True if no client ever listened to the GET stream. */
  get neverHadGet(): boolean {
    return !this.#hadGet;
  }

  /** The number of connections. */
  get size(): number {
    return this.#cursors.size;
  }

  /** True if a client listens to the GET stream. */
  get hasGet(): boolean {
    return this.#cursors.has(getStream);
  }

  /** Opens a stream for the answer to a POST, and connects that POST if it has a connection. */
  open(sink: EventSink | undefined, ids: readonly RequestId[]): number {
    const stream = this.#next++;
    this.#ids.set(stream, ids);
    this.#ids.delete(stream - maxKnownStreams);
    if (sink !== undefined) this.#attach(stream, sink, undefined, 'live');
    return stream;
  }

  /**
   * Connects a client to the GET stream, after the last event that an earlier connection was sent. The newest
   * connection replaces the older one, because a reconnecting client must not be refused while its dead socket lingers.
   * @param position from which the client is told to resume
   */
  listen(reply: Reply, position: LogPosition = this.#getCursor ?? this.#options.beginning): void {
    this.#cursors.get(getStream)?.close();
    const sink = reply.stream();
    if (this.#options.primes() && !reply.isContinued)
      sink.write(createPrimingBatch({ ...position, stream: getStream }, this.#options.retryMs));
    this.#attach(getStream, sink, this.#getCursor);
  }

  /**
   * Continues a stream after the event that the client names (2025-11-25, basic/transports, "Resumability and
   * Redelivery").
   */
  async resume(reply: Reply, id: EventId): Promise<void> {
    const { log, key, name, telemetry, onFailed } = this.#options;
    const isFinal = id.seq === finalSeq;
    const deliveries = this.#deliveries;
    const read = isFinal ? undefined : await log.read(key, id.stream, id, eventsPerRead).catch(onFailed);
    if (reply.isGone) return;
    if (isFinal) reply.nothing();
    const outcome = isFinal
      ? 'complete'
      : this.#continue(reply, id, read ?? undefined, deliveries === this.#deliveries);
    telemetry.emit({ type: 'stream-resumed', server: name.server, session: name.session, outcome });
  }

  /**
   * @param read the log's result for the stream; undefined if it could not be read
   * @param isCurrent true if no event was delivered during the read
   */
  #continue(reply: Reply, id: EventId, read: ReadOutcome | undefined, isCurrent: boolean): ResumeOutcome {
    const isKnown = this.#requestsOf(id).length > 0;
    if (read === undefined) {
      reply.fault('internal', null);
      return 'failed';
    }
    // The store lost this event with its owner. If the call goes on, its client gets the following events.
    const isEarlier = id.epoch < this.#options.beginning.epoch && this.#ids.has(id.stream);
    if (read.outcome === 'in_future' && !isEarlier) {
      reply.fault('bad_event_id', null);
      return 'unknown';
    }
    if (read.outcome === 'unknown_stream') {
      // A listener that has only the priming event of a stream without events.
      const isBeginning = id.stream === getStream && id.seq === 0 && id.epoch <= this.#options.beginning.epoch;
      if (isBeginning) this.listen(reply, id);
      else if (isKnown) this.#reportLoss(reply, id);
      else reply.fault('unknown_event_id', null);
      return isBeginning ? 'resumed' : isKnown ? 'history_lost' : 'unknown';
    }
    const isBroken = read.outcome === 'ok' && read.broken;
    const hasEnded = read.outcome === 'ok' && read.ended;
    if (isBroken && hasEnded && !isKnown) {
      reply.fault('unknown_event_id', null);
      return 'unknown';
    }
    if (hasEnded && !isBroken && read.events.length === 0) {
      reply.nothing();
      return 'complete';
    }
    this.#cursors.get(id.stream)?.close();
    const sink = reply.stream();
    const requests = id.requests ?? this.#requestNamesOf(id.stream);
    const at = { ...id, ...(requests !== undefined && { requests }) };
    // Without it, a client whose stream is cut before its first event would reconnect without Last-Event-ID.
    if (this.#options.primes() && !reply.isContinued) sink.write(createPrimingBatch(at, this.#options.retryMs));
    this.#attach(id.stream, sink, at, isCurrent ? read : undefined);
    return isBroken ? 'history_lost' : 'resumed';
  }

  /** The store lost its data, and with them a stream that had ended. Tells the client. */
  #reportLoss(reply: Reply, id: EventId): void {
    const sink = reply.stream();
    this.#reportGap(id, sink);
    sink.end();
  }

  /** Ends the connection of a stream with a message that has no event id. */
  sendUnlogged(stream: number, text: string): void {
    const streamCursor = this.#cursors.get(stream);
    streamCursor?.sink.write(createMessageBatch(Buffer.from(text)));
    streamCursor?.close();
  }

  /** Connects a client that has no event yet to a stream of an earlier attempt. */
  join(stream: number, reply: Reply): void {
    this.#cursors.get(stream)?.close();
    this.#attach(stream, reply.stream(), undefined);
  }

  /** Passes events that were just stored to their connections. */
  deliver(events: readonly StoredEvent[]): void {
    this.#deliveries += 1;
    for (let from = 0; from < events.length; ) {
      const stream = (events[from] as StoredEvent).stream;
      let to = from + 1;
      while (events[to]?.stream === stream) to += 1;
      this.#cursors.get(stream)?.push(to - from === events.length ? events : events.slice(from, to));
      from = to;
    }
    this.#measurePressure();
  }

  /**
   * Another instance may own the session, and nothing can be stored here (P3). A client that waits for an answer
   * continues elsewhere after its last event. Without an event, it is told that the outcome is unknown. The GET stream
   * waits (P7). The instance of a forwarded client handles that client itself.
   * @param openForMs connections that are younger are left alone
   */
  detachClients(openForMs: number): void {
    const latest = performance.now() - openForMs;
    for (const streamCursor of [...this.#cursors.values()]) {
      if (
        streamCursor.stream === getStream ||
        streamCursor.sink.handOver !== undefined ||
        streamCursor.openedAt > latest
      )
        continue;
      if (!isUnresumable(streamCursor)) streamCursor.sink.write(createRetryBatch(Math.random() * strandedReturnMs));
      this.#end(streamCursor);
    }
  }

  /**
   * Ends all connections in order.
   * @param canResume true if their clients can continue on another instance. They are told to reconnect at different
   *   times. The next stream sets the usual reconnection time again.
   */
  closeAll(canResume = false): void {
    this.#isClosed = true;
    for (const streamCursor of [...this.#cursors.values()]) {
      if (canResume && streamCursor.sink.handOver !== undefined) streamCursor.sink.handOver();
      else if (canResume && (this.#options.primes() || this.#options.isOneStream))
        streamCursor.sink.write(createRetryBatch(Math.random() * returnWindowMs));
      this.#end(streamCursor);
    }
  }

  /**
   * Ends a connection in order. A client without an event id cannot resume, so it is told that the outcome of its
   * requests is unknown (P3).
   */
  #end(streamCursor: StreamCursor): void {
    if (isUnresumable(streamCursor)) {
      for (const id of this.#ids.get(streamCursor.stream) ?? [])
        streamCursor.sink.write(createMessageBatch(Buffer.from(faultMessage('outcome_unknown', id))));
    }
    streamCursor.close();
  }

  #attach(
    stream: number,
    sink: EventSink,
    after: Omit<EventId, 'stream'> | undefined,
    start?: 'live' | ReadOutcome,
  ): void {
    const { log, key, retryMs, slowReaderMs, streamMaxAgeMs, isOneStream, telemetry, beginning, onFailed } =
      this.#options;
    const requests = after?.requests ?? this.#requestNamesOf(stream);
    // The answer to a POST can be cut only if its client has an event id to come back with.
    const endAged = (): void => (isUnresumable(streamCursor) ? undefined : streamCursor.close());
    const age = isOneStream ? undefined : setTimeout(endAged, withJitter(streamMaxAgeMs));
    const streamCursor: StreamCursor = new StreamCursor(
      {
        log,
        key,
        stream,
        after,
        sink,
        requests,
        retryMs,
        slowReaderMs,
        onBroken: (to) => this.#reportGap({ stream, ...beginning, ...(requests !== undefined && { requests }) }, to),
        onCaughtUp: () => this.#measurePressure(),
        onWritten: (count, source) => telemetry.delivered[source].add(count),
        onFailed: (cause) => {
          onFailed(cause);
          if (isUnresumable(streamCursor)) this.#end(streamCursor);
          else sink.cut();
        },
        onClosed: () => {
          clearTimeout(age);
          this.#detach(streamCursor);
        },
      },
      start,
    );
    this.#cursors.set(stream, streamCursor);
    this.#hadGet ||= stream === getStream;
    if (this.#isClosed) streamCursor.close(); // its read of the log ended after the session
  }

  #detach(streamCursor: StreamCursor): void {
    if (streamCursor.stream === getStream) {
      this.#unreadSince = performance.now();
      this.#hasLeft = streamCursor.isClosedByClient;
      this.#getCursor = streamCursor.cursor;
      this.#options.onGetCursor(streamCursor.cursor);
    }
    if (this.#cursors.get(streamCursor.stream) === streamCursor) this.#cursors.delete(streamCursor.stream);
    this.#measurePressure();
  }

  /**
   * Reports a gap: events that the client lacks are gone. A listener continues, and a caller gets an error for its
   * requests.
   */
  #reportGap(at: EventId, sink: EventSink): boolean {
    const { onHistoryLost, beginning } = this.#options;
    const { stream } = at;
    onHistoryLost();
    if (stream === getStream) return sink.write(gapBatch) || true;
    const texts = this.#requestsOf(at).map((id) => faultMessage('history_lost', id));
    if (texts.length > 0) sink.write(createFinalBatch(texts, { stream, epoch: beginning.epoch }));
    return false;
  }

  /** The suffix for a stream's event ids, which names the requests that the stream answers. */
  #requestNamesOf(stream: number): string | undefined {
    return formatRequests(this.#ids.get(stream) ?? []);
  }

  /** The requests that a stream answers, as far as its client or this owner knows. */
  #requestsOf(id: EventId): readonly RequestId[] {
    return id.requests === undefined ? (this.#ids.get(id.stream) ?? []) : readRequestIds(id);
  }

  #measurePressure(): void {
    const { maxLag, onPressure } = this.#options;
    let isHigh = false;
    for (const { lag } of this.#cursors.values()) isHigh ||= lag.events > maxLag.events || lag.bytes > maxLag.bytes;
    if (isHigh === this.#pressureIsHigh) return;
    this.#pressureIsHigh = isHigh;
    onPressure(isHigh);
  }
}

/**
 * The number of the first stream that an owner opens. A store that lost its newest data does not know all streams of
 * earlier owners. A later owner therefore starts at its epoch, so that no client takes a stream for its own.
 */
const firstStreamOf = ({ earlier, beginning }: StreamsOptions): number =>
  (earlier === undefined ? getStream : Math.max(earlier.newestStream, beginning.epoch)) + 1;

/** True for a client that has no event id with which it could resume the answer to its POST. */
const isUnresumable = ({ stream, cursor }: StreamCursor): boolean => stream !== getStream && cursor === undefined;

/** Spread over 80 to 120 %, so that streams opened together do not all reconnect together. */
const withJitter = (ms: number): number => ms * (0.8 + Math.random() * 0.4);
