import { faultMessage, type RequestId } from '../../protocol/faults.ts';
import {
  type EventId,
  finalSeq,
  formatEventId,
  formatRequests,
  type LogPosition,
  readRequestIds,
} from '../../protocol/wire/event-id.ts';
import {
  encodeEvents,
  encodeFinalEvents,
  encodeMessage,
  encodeRetry,
  gapEvent,
  noData,
} from '../../protocol/wire/sse.ts';
import type { EventSink, Reply } from '../../reply/reply.ts';
import type { EventLog, ReadOutcome, StoredEvent } from '../../store/event-log.ts';
import { SparseMap } from '../../util/sparse-map.ts';
import type { ResumeOutcome, StreamObserver } from '../session-observer.ts';
import { StreamCursor } from './cursor.ts';

/** The number of the standalone GET stream; the streams of POSTs count up from 1. */
export const getStream = 0;

/** Clients of an instance that stops come back over this time. */
export const returnWindowMs = 3_000;

/** Clients of an instance that is cut off from its store go elsewhere over this time. */
export const strandedReturnMs = 250;

/** Of so many streams it is known which requests they answer. */
const maxKnownStreams = 1_000;

/** What the streams of a session need. */
export interface StreamsOptions {
  readonly log: EventLog;
  readonly key: string;
  readonly retryMs: number;
  readonly slowReaderMs: number;
  /** After about this time a stream is ended, so that a connection that died unseen is found; its client resumes it. */
  readonly streamMaxAgeMs: number;
  /** A client that lags by more than this has its server paused. */
  readonly maxLag: { readonly events: number; readonly bytes: number };
  /** The place before the first event of this owner. */
  readonly beginning: LogPosition;
  /** What an earlier owner left: where its streams end, and whose answers they are. */
  readonly earlier?: { readonly newestStream: number; readonly ids: ReadonlyMap<number, readonly RequestId[]> };
  /** The place on the GET stream up to which it was delivered, for a listener that names none. */
  readonly getCursor?: LogPosition | undefined;
  /** So much of the GET stream was delivered to a listener that is gone. */
  onGetCursor(cursor: LogPosition | undefined): void;
  /**
   * The client hears everything on its GET stream, and may be one that does not reconnect: a stream that it loses is its
   * session, so it is not ended for its age, nor before the end of a drain.
   */
  readonly isOneStream?: boolean;
  /** Is told of clients that come back, and what they are sent; absent if nobody wants to know. */
  readonly observer?: StreamObserver | undefined;
  /** True if streams begin with a priming event; known once `initialize` is answered. */
  primes(): boolean;
  /** A client was told that events which it lacks are no longer kept. */
  onHistoryLost(): void;
  /** The log could not be read; the connection was cut, and its client can resume. */
  onFailed(cause: unknown): void;
  /** Some client lags so far behind that the server must be paused, or none does any more. */
  onPressure(isHigh: boolean): void;
}

/** The streams of one session and the connections that are fed from them, at most one for each stream. */
export class Streams {
  readonly #options: StreamsOptions;
  readonly #feeds = new Map<number, StreamCursor>();
  /** The requests that the newest streams answer, for those who come for an answer that is no longer kept. */
  readonly #ids: SparseMap<number, readonly RequestId[]>;
  #next: number;
  #getCursor: LogPosition | undefined;
  /** Since when nobody listens to the GET stream, on the monotonic clock in milliseconds. */
  #unheardSince = performance.now();
  #pressureIsHigh = false;
  /** The session has ended: who comes now is sent away, as are those who were there. */
  #isOver = false;

  constructor(options: StreamsOptions) {
    this.#options = options;
    this.#ids = new SparseMap(options.earlier?.ids);
    this.#next = firstStreamOf(options);
    this.#getCursor = options.getCursor;
  }

  /** True if some client cannot come back to its stream elsewhere: it has no event id on it yet, or may not know how. */
  get hasUnresumableClients(): boolean {
    const { isOneStream, primes } = this.#options;
    const isPlaceless = ({ sink, cursor }: StreamCursor) =>
      isOneStream ? sink.handOver === undefined : cursor === undefined && !primes();
    return [...this.#feeds.values()].some(isPlaceless);
  }

  /** For how long nobody has listened to the GET stream, in milliseconds; 0 while somebody does. */
  get unreadGetMs(): number {
    return this.hasGet ? 0 : performance.now() - this.#unheardSince;
  }

  /** How many connections are fed. */
  get size(): number {
    return this.#feeds.size;
  }

  /** True if a client listens to the GET stream. */
  get hasGet(): boolean {
    return this.#feeds.has(getStream);
  }

  /** A new stream for the answer to a POST, fed to that POST's connection, if there is one. */
  open(sink: EventSink | undefined, ids: readonly RequestId[]): number {
    const stream = this.#next++;
    this.#ids.set(stream, ids);
    this.#ids.delete(stream - maxKnownStreams);
    if (sink !== undefined) this.#attach(stream, sink, undefined, true);
    return stream;
  }

  /**
   * Feeds the GET stream to a connection, from the last event on that an earlier connection was sent. The newest
   * connection takes the stream over: a client that reconnects must not be refused while its dead socket lingers.
   * @param place what the client is told to resume from
   */
  listen(reply: Reply, place: LogPosition = this.#getCursor ?? this.#options.beginning): void {
    this.#feeds.get(getStream)?.close();
    const sink = reply.stream();
    if (this.#options.primes() && !reply.isContinued) this.#prime(sink, { ...place, stream: getStream });
    this.#attach(getStream, sink, this.#getCursor, false);
  }

  /** Continues a stream after the event that the client names (2025-11-25, basic/transports, "Resumability and Redelivery"). */
  async resume(reply: Reply, id: EventId): Promise<void> {
    const { log, key, observer, onFailed } = this.#options;
    const isTold = id.seq === finalSeq;
    const read = isTold ? undefined : await log.read(key, id.stream, id, 1).catch(onFailed);
    if (reply.isGone) return;
    if (isTold) reply.nothing();
    const outcome = isTold ? 'complete' : this.#goOn(reply, id, read ?? undefined);
    observer?.resumed(outcome);
  }

  /** @param read what the log has of the stream; undefined if it could not be read */
  #goOn(reply: Reply, id: EventId, read: ReadOutcome | undefined): ResumeOutcome {
    const isKnown = this.#requestsOf(id).length > 0;
    if (read === undefined) {
      reply.fault('internal', null);
      return 'failed';
    }
    // Of an event that the store lost with its owner, a call that goes on has its client hear what comes.
    const isEarlier = id.epoch < this.#options.beginning.epoch && this.#ids.has(id.stream);
    if (read.outcome === 'in_future' && !isEarlier) {
      reply.fault('bad_event_id', null);
      return 'unknown';
    }
    if (read.outcome === 'unknown_stream') {
      // A listener that heard nothing yet but the priming event of a stream without events.
      const isBeginning = id.stream === getStream && id.seq === 0 && id.epoch <= this.#options.beginning.epoch;
      if (isBeginning) this.listen(reply, id);
      else if (isKnown) this.#tellLoss(reply, id);
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
    this.#feeds.get(id.stream)?.close();
    const sink = reply.stream();
    const requests = id.requests ?? this.#namesOf(id.stream);
    const at = { ...id, ...(requests !== undefined && { requests }) };
    // A client whose stream is cut again before its first event would reconnect without Last-Event-ID otherwise.
    if (this.#options.primes() && !reply.isContinued) this.#prime(sink, at);
    this.#attach(id.stream, sink, at, false);
    return isBroken ? 'history_lost' : 'resumed';
  }

  /** The store lost its data and with them a stream that had ended: its client is told. */
  #tellLoss(reply: Reply, id: EventId): void {
    const sink = reply.stream();
    this.#tellBreak(id, sink);
    sink.end();
  }

  /** Ends the connection of a stream with a message that has no event id. */
  sendUnlogged(stream: number, text: string): void {
    const feed = this.#feeds.get(stream);
    feed?.sink.write(encodeMessage(Buffer.from(text)));
    feed?.close();
  }

  /** Feeds a stream of an earlier owner to the connection of a client that had no event of it yet. */
  join(stream: number, reply: Reply): void {
    this.#feeds.get(stream)?.close();
    this.#attach(stream, reply.stream(), undefined, false);
  }

  /** Passes events that were just stored to the connections that wait for them. */
  deliver(events: readonly StoredEvent[]): void {
    for (let from = 0; from < events.length; ) {
      const stream = (events[from] as StoredEvent).stream;
      let to = from + 1;
      while (events[to]?.stream === stream) to += 1;
      this.#feeds.get(stream)?.push(to - from === events.length ? events : events.slice(from, to));
      from = to;
    }
    this.#measurePressure();
  }

  /**
   * Another instance may have the session, and nothing can be stored here: whoever waits for an answer goes on elsewhere from
   * the last event that it was sent; who was sent none is told that the outcome of its requests is not known (P3). The GET
   * stream waits (P7), and a client at another instance is seen to there.
   * @param openForMs connections that are younger are left alone
   */
  detachClients(openForMs: number): void {
    const until = performance.now() - openForMs;
    for (const feed of [...this.#feeds.values()]) {
      if (feed.stream === getStream || feed.sink.handOver !== undefined || feed.openedAt > until) continue;
      if (!isPlaceless(feed)) feed.sink.write(encodeRetry(Math.random() * strandedReturnMs));
      this.#end(feed);
    }
  }

  /**
   * Ends all connections in order.
   * @param goOn their clients can go on with another instance, and are told to come back at different times: the next
   *   stream begins with the usual time again, so that this one does not stay with them
   */
  closeAll(goOn = false): void {
    this.#isOver = true;
    for (const feed of [...this.#feeds.values()]) {
      if (goOn && feed.sink.handOver !== undefined) feed.sink.handOver();
      else if (goOn && (this.#options.primes() || this.#options.isOneStream))
        feed.sink.write(encodeRetry(Math.random() * returnWindowMs));
      this.#end(feed);
    }
  }

  /**
   * Ends a connection in order. One that was sent no event has nothing to resume from: its client is told that the outcome of
   * its requests is not known (P3).
   */
  #end(feed: StreamCursor): void {
    if (isPlaceless(feed)) {
      for (const id of this.#ids.get(feed.stream) ?? [])
        feed.sink.write(encodeMessage(Buffer.from(faultMessage('outcome_unknown', id))));
    }
    feed.close();
  }

  #attach(stream: number, sink: EventSink, after: Omit<EventId, 'stream'> | undefined, live: boolean): void {
    const { log, key, retryMs, slowReaderMs, streamMaxAgeMs, isOneStream, observer, beginning, onFailed } =
      this.#options;
    const requests = after?.requests ?? this.#namesOf(stream);
    // The answer to a POST can be cut only where its client has an event id to come back with.
    const endOld = (): void => (isPlaceless(feed) ? undefined : feed.close());
    const age = isOneStream ? undefined : setTimeout(endOld, withJitter(streamMaxAgeMs));
    const feed: StreamCursor = new StreamCursor(
      {
        log,
        key,
        stream,
        after,
        sink,
        requests,
        retryMs,
        slowReaderMs,
        onBroken: (to) => this.#tellBreak({ stream, ...beginning, ...(requests !== undefined && { requests }) }, to),
        onCaughtUp: () => this.#measurePressure(),
        onWritten: (count, source) => observer?.delivered(count, source),
        onFailed: (cause) => {
          onFailed(cause);
          if (isPlaceless(feed)) this.#end(feed);
          else sink.cut();
        },
        onClosed: () => {
          clearTimeout(age);
          this.#detach(feed);
        },
      },
      live,
    );
    this.#feeds.set(stream, feed);
    if (this.#isOver) feed.close(); // what it asked of the log before was answered after that
  }

  #detach(feed: StreamCursor): void {
    if (feed.stream === getStream) {
      this.#unheardSince = performance.now();
      this.#getCursor = feed.cursor;
      this.#options.onGetCursor(feed.cursor);
    }
    if (this.#feeds.get(feed.stream) === feed) this.#feeds.delete(feed.stream);
    this.#measurePressure();
  }

  /** Events that the client lacks are gone: a listener is told and goes on, a caller gets an error for its requests. */
  #tellBreak(at: EventId, sink: EventSink): boolean {
    const { onHistoryLost, beginning } = this.#options;
    const { stream } = at;
    onHistoryLost();
    if (stream === getStream) return sink.write(gapEvent) || true;
    const texts = this.#requestsOf(at).map((id) => faultMessage('history_lost', id));
    const { epoch } = beginning;
    if (texts.length > 0)
      sink.write(encodeFinalEvents(texts, { stream, epoch }), formatEventId(stream, { epoch, seq: finalSeq }));
    return false;
  }

  /** How the ids of a stream name the requests that it answers. */
  #namesOf(stream: number): string | undefined {
    return formatRequests(this.#ids.get(stream) ?? []);
  }

  /** The requests that a stream answers, as far as its client or this owner knows. */
  #requestsOf(id: EventId): readonly RequestId[] {
    return id.requests === undefined ? (this.#ids.get(id.stream) ?? []) : readRequestIds(id);
  }

  /** An empty event that gives the client a place to resume from. */
  #prime(sink: EventSink, id: EventId): void {
    const { stream, epoch, seq, requests } = id;
    const text = encodeEvents([{ stream, epoch, seq, data: noData }], this.#options.retryMs, requests);
    sink.write(text, formatEventId(stream, { epoch, seq }));
  }

  #measurePressure(): void {
    const { maxLag, onPressure } = this.#options;
    let isHigh = false;
    for (const { lag } of this.#feeds.values()) isHigh ||= lag.events > maxLag.events || lag.bytes > maxLag.bytes;
    if (isHigh === this.#pressureIsHigh) return;
    this.#pressureIsHigh = isHigh;
    onPressure(isHigh);
  }
}

/**
 * The number of the first stream that an owner opens. A store that lost its newest data does not know all streams of earlier
 * owners: those of a later owner begin at its epoch, so that no client takes one for its own.
 */
const firstStreamOf = ({ earlier, beginning }: StreamsOptions): number =>
  (earlier === undefined ? getStream : Math.max(earlier.newestStream, beginning.epoch)) + 1;

/** True for a client that has no event id with which it could come back for the answer to its POST. */
const isPlaceless = ({ stream, cursor }: StreamCursor): boolean => stream !== getStream && cursor === undefined;

/** Spread over 80 to 120 %, so that streams opened together do not all reconnect together. */
const withJitter = (ms: number): number => ms * (0.8 + Math.random() * 0.4);
