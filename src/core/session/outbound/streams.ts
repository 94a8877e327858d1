import { faultMessage, type RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
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
import { type EventSink, faultAnswer, nothing, type Reply } from '../../reply/reply.ts';
import { getStream, type ReadOutcome, type StoredEvent } from '../../store/event-log.ts';
import { eventsPerRead } from '../../store/read-pages.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { SparseMap } from '../../util/sparse-map.ts';
import { clientIdIn } from '../record/adoption.ts';
import type { SessionCore } from '../session-core.ts';
import type { ResumeOutcome } from '../session-events.ts';
import { type CursorOwner, type RepairedLog, StreamCursor } from './stream-cursor.ts';

/** Clients of an instance that stops come back spread over this time. */
export const returnWindowMs = 3_000;

/** Clients of an instance that is cut off from its store go elsewhere spread over this time. */
export const strandedReturnMs = 250;

/** For how many streams the answered requests are remembered. */
const maxKnownStreams = 1_000;

/** The server is paused while a client lags by more than these parts of the log, as divisors. */
const maxLagShare = { events: 8, bytes: 2 };

/** The streams of one session and the connections that they feed, at most one for each stream. */
export class Streams implements CursorOwner {
  /** The log, which repairs itself before it reports a loss. */
  readonly log: RepairedLog;
  /** Called when a client lags so far behind that the server must be paused, and when none does any more. */
  onPressure: ((isHigh: boolean) => void) | undefined;
  readonly session: SessionCore;
  readonly #cursors = new SparseMap<number, StreamCursor>();
  /** The requests that the newest streams answer, for clients whose answer is no longer kept. */
  readonly #ids = new SparseMap<number, readonly RequestId[]>();
  #next: number;
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

  constructor(session: SessionCore, log: RepairedLog) {
    this.session = session;
    this.log = log;
    const { earlier, epoch } = session;
    for (const call of earlier?.pending ?? [])
      this.#ids.set(call.stream, [...(this.#ids.get(call.stream) ?? []), clientIdIn(call)]);
    // A store that lost its newest data does not know all streams of earlier owners. A later owner therefore starts at
    // its epoch, so that no client takes a stream for its own.
    this.#hadGet = earlier !== undefined;
    this.#next = (earlier === undefined ? getStream : Math.max(earlier.newestStream, epoch)) + 1;
  }

  /** The position before the first event of this owner. */
  get #beginning(): LogPosition {
    return { epoch: this.session.epoch, seq: 0 };
  }

  /** True if a client could not resume its stream elsewhere, because it has no event id yet. */
  get hasUnresumableClients(): boolean {
    return !this.session.primes && [...this.#cursors.values()].some(({ cursor }) => cursor === undefined);
  }

  /**
   * How long ago the client closed its GET stream, in milliseconds. Undefined if the client listens, never listened
   * here, or was cut off by the gateway.
   */
  get leftMs(): number | undefined {
    return this.#hasLeft && !this.hasGet ? performance.now() - this.#unreadSince : undefined;
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

  /** True if a connection follows the stream. */
  isRead(stream: number): boolean {
    return this.#cursors.has(stream);
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
  listen(reply: Reply, position?: LogPosition): void {
    this.#cursors.get(getStream)?.close();
    const after = this.session.client.getCursor;
    const sink = this.#openSink(reply, { ...(position ?? after ?? this.#beginning), stream: getStream });
    this.#attach(getStream, sink, after);
  }

  /**
   * Continues a stream after the event that the client names (2025-11-25, basic/transports, "Resumability and
   * Redelivery").
   */
  async resume(reply: Reply, id: EventId): Promise<void> {
    const { name, parts } = this.session;
    const isFinal = id.seq === finalSeq;
    const deliveries = this.#deliveries;
    const read = isFinal ? undefined : await this.#readAfter(id);
    if (reply.isGone) return;
    if (read === undefined) reply.answer(nothing);
    const outcome = read === undefined ? 'complete' : this.#continue(reply, id, read, deliveries === this.#deliveries);
    parts.telemetry.emit({ type: 'stream-resumed', server: name.server, session: name.session, outcome });
  }

  /**
   * Reads the log for a client that resumes, or returns why that is not possible. The client waits for a store that is
   * away for a short time (P7).
   */
  async #readAfter(id: EventId): Promise<ReadOutcome | 'store_unavailable' | 'internal'> {
    const after = this.#isBeginning(id) ? undefined : id;
    try {
      return await this.log.read(this.session.key, id.stream, after, eventsPerRead, this.session.limits.storeWaitMs);
    } catch (cause) {
      this.session.report(cause);
      return cause instanceof StoreUnavailable ? 'store_unavailable' : 'internal';
    }
  }

  /**
   * True for the id of the priming event of a listener that was never sent an event. It lacks the events of earlier owners,
   * too.
   */
  #isBeginning({ stream, seq, epoch }: EventId): boolean {
    return stream === getStream && seq === 0 && epoch <= this.session.epoch;
  }

  /**
   * @param read the log's result for the stream, or the reason why it could not be read
   * @param isCurrent true if no event was delivered during the read
   */
  #continue(
    reply: Reply,
    id: EventId,
    read: ReadOutcome | 'store_unavailable' | 'internal',
    isCurrent: boolean,
  ): ResumeOutcome {
    const isKnown = this.#requestsOf(id).length > 0;
    if (read === 'store_unavailable') this.#sendAway(reply, id);
    else if (read === 'internal') reply.answer(faultAnswer(read, null));
    if (typeof read === 'string') return 'failed';
    // The store lost this event with its owner. If the call goes on, its client gets the following events. The GET
    // stream goes on in any case.
    const isListener = id.stream === getStream && this.session.earlier !== undefined;
    const isEarlier = id.epoch < this.session.epoch && (isListener || this.#ids.has(id.stream));
    if (read.outcome === 'in_future' && !isEarlier) {
      reply.answer(faultAnswer('bad_event_id', null));
      return 'unknown';
    }
    if (read.outcome === 'unknown_stream') {
      // A stream without events.
      const isBeginning = this.#isBeginning(id);
      if (isBeginning) this.listen(reply, id);
      else if (isListener && isEarlier) return this.#listenAfterLoss(reply, id);
      else if (isKnown) this.#reportLoss(reply, id);
      else reply.answer(faultAnswer('unknown_event_id', null));
      return isBeginning ? 'resumed' : isKnown ? 'history_lost' : 'unknown';
    }
    if (read.outcome === 'in_future' && isListener) return this.#listenAfterLoss(reply, id);
    const isBroken = read.outcome === 'ok' && read.broken;
    const hasEnded = read.outcome === 'ok' && read.ended;
    if (isBroken && hasEnded && !isKnown) {
      reply.answer(faultAnswer('unknown_event_id', null));
      return 'unknown';
    }
    if (hasEnded && !isBroken && read.events.length === 0) {
      reply.answer(nothing);
      return 'complete';
    }
    this.#cursors.get(id.stream)?.close();
    const requests = id.requests ?? this.#requestNamesOf(id.stream);
    const at = { ...id, ...(requests !== undefined && { requests }) };
    this.#attach(
      id.stream,
      this.#openSink(reply, at),
      this.#isBeginning(id) ? undefined : at,
      isCurrent ? read : undefined,
    );
    return isBroken ? 'history_lost' : 'resumed';
  }

  /**
   * Opens an event stream with a priming event, where the revision has one. Without it, a client whose stream is cut before
   * its first event would reconnect without Last-Event-ID.
   */
  #openSink(reply: Reply, at: EventId): EventSink {
    const sink = reply.stream();
    const { primes, limits } = this.session;
    if (primes && !reply.isContinued) sink.write(createPrimingBatch(at, limits.reconnectDelayMs));
    return sink;
  }

  /**
   * The store lost the newest events of the GET stream with their owner. The client may lack some of them, too. It is
   * told so, and listens on.
   */
  #listenAfterLoss(reply: Reply, id: EventId): ResumeOutcome {
    this.#cursors.get(getStream)?.close();
    const sink = this.#openSink(reply, id);
    this.#reportGap(id, sink);
    this.#attach(getStream, sink, id);
    return 'history_lost';
  }

  /**
   * The store is away. The client comes back with the same event id, here or at an instance that reaches the store: a GET
   * is never refused for that (P7).
   */
  #sendAway(reply: Reply, id: EventId): void {
    const sink = this.#openSink(reply, id);
    sink.write(createRetryBatch(Math.random() * strandedReturnMs));
    sink.end();
  }

  /** The store lost its data, and with them a stream that had ended. Tells the client. */
  #reportLoss(reply: Reply, id: EventId): void {
    const sink = reply.stream();
    this.#reportGap(id, sink);
    sink.end();
  }

  /**
   * Sends all that the stream's connection lacks, without event ids, unless it also lacks events of the log.
   * @param eventsAfter the events after a position that the log has not taken yet
   */
  sendUnstored(stream: number, eventsAfter: (position: LogPosition | undefined) => readonly StoredEvent[]): void {
    const streamCursor = this.#cursors.get(stream);
    if (streamCursor?.isCurrent) streamCursor.sendUnstored(eventsAfter(streamCursor.cursor));
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
    this.measurePressure();
  }

  /**
   * Keeps the message of an event for the connection that follows the stream, until it is stored. The message is too
   * large for the log, or the connection is one of this process, which needs no text to read again. Whoever resumes later
   * gets what the log has.
   */
  hold(stream: number, seq: number, message: Message): void {
    const cursor = this.#cursors.get(stream);
    if (cursor !== undefined) cursor.hold({ epoch: this.session.epoch, seq }, message);
    else if (message.text.length > this.session.limits.maxEventBytes) this.session.drop('oversized');
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
      else if (canResume && this.session.primes)
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
    const { limits, client } = this.session;
    const cursor = new StreamCursor(this, stream, sink, this.#requestNamesOf(stream), after, start);
    const { maxAgeMs } = limits;
    // A client that loses its only stream loses its session, so that stream has no maximum age.
    if (maxAgeMs > 0 && !client.isOneStream) cursor.ageTimer = setTimeout(endAged, withJitter(maxAgeMs), cursor);
    this.#cursors.set(stream, cursor);
    this.#hadGet ||= stream === getStream;
    if (this.#isClosed) cursor.close(); // its read of the log ended after the session
  }

  reportBroken({ stream, requests, sink }: StreamCursor): boolean {
    return this.#reportGap({ stream, ...this.#beginning, ...(requests !== undefined && { requests }) }, sink);
  }

  endFailed(cursor: StreamCursor, cause: unknown): void {
    this.session.report(cause);
    if (isUnresumable(cursor)) this.#end(cursor);
    else cursor.sink.cut();
  }

  detach(cursor: StreamCursor): void {
    const { stream } = cursor;
    const { name, parts } = this.session;
    if (cursor.isTooSlow) parts.telemetry.emit({ type: 'session-client-cut', name });
    if (stream === getStream) {
      this.#unreadSince = performance.now();
      this.#hasLeft = cursor.isClosedByClient;
      this.session.noteGetCursor(cursor.cursor);
    }
    if (this.#cursors.get(stream) === cursor) this.#cursors.delete(stream);
    this.measurePressure();
  }

  /**
   * Reports a gap: events that the client lacks are gone. A listener continues, and a caller gets an error for its
   * requests.
   */
  #reportGap(at: EventId, sink: EventSink): boolean {
    const { stream } = at;
    this.session.drop('history_lost');
    if (stream === getStream) return sink.write(gapBatch) || true;
    const texts = this.#requestsOf(at).map((id) => faultMessage('history_lost', id));
    if (texts.length > 0) sink.write(createFinalBatch(texts, { stream, epoch: this.session.epoch }));
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

  measurePressure(): void {
    const { maxEvents, maxBytes } = this.session.limits.logLimits;
    let isHigh = false;
    for (const { lagEvents, lagBytes } of this.#cursors.values())
      isHigh ||= lagEvents > maxEvents / maxLagShare.events || lagBytes > maxBytes / maxLagShare.bytes;
    if (isHigh === this.#pressureIsHigh) return;
    this.#pressureIsHigh = isHigh;
    this.onPressure?.(isHigh);
  }
}

/** True for a client that has no event id with which it could resume the answer to its POST. */
const isUnresumable = ({ stream, cursor }: StreamCursor): boolean => stream !== getStream && cursor === undefined;

/** The answer to a POST can be ended only if its client has an event id to come back with. */
function endAged(cursor: StreamCursor): void {
  if (!isUnresumable(cursor)) cursor.close();
}

/** Spread over 80 to 120 %, so that streams opened together do not all reconnect together. */
const withJitter = (ms: number): number => ms * (0.8 + Math.random() * 0.4);
