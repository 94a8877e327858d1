import type { RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
import { compareLogPositions, type LogPosition } from '../../protocol/wire/event-id.ts';
import type {
  AppendOutcome,
  EventLog,
  NewEvent,
  PendingCall,
  ReadOutcome,
  StoredEvent,
} from '../../store/event-log.ts';
import { retryWhileUnavailable } from '../../store/retry-unavailable.ts';
import type { LogState, Registration, StreamTail } from '../../store/session-records.ts';
import { SparseMap } from '../../util/sparse-map.ts';
import type { SessionCore } from '../session-core.ts';
import { Streams } from './streams.ts';

/**
 * Why the log takes no more events of this owner. `fenced`: a newer owner has the session. `ended`: the session was
 * ended elsewhere.
 */
type WriteRefusal = 'fenced' | 'ended' | 'gap' | 'failed';

/** The effect of an event on the table of pending calls. */
export interface EventEffects {
  readonly opens?: readonly PendingCall[] | undefined;
  readonly settles?: RequestId | undefined;
  /** The message for a connection that follows the stream now; see `Streams.hold`. */
  readonly live?: Message | undefined;
}

/** An event of this owner, before and after it is stored. */
type OwnEvent = NewEvent &
  StoredEvent & {
    /** The pending call that the event settled, without its text. Set when the event is stored. */
    settled?: PendingCall;
  };

/** Events of one append, in order. */
type Batch = readonly OwnEvent[];

/** An append whose outcome is not known, or not applied yet. */
interface SentAppend {
  readonly batch: Batch;
  readonly outcome: Promise<AppendOutcome>;
}

/** An answer that ends the wait of a client, which the log has not taken yet. */
interface WaitingAnswer {
  readonly seq: number;
  readonly stream: number;
  /** On the monotonic clock, in milliseconds. */
  readonly since: number;
}

/** How many appends may be under way. The log works on one while the outcome of the other one is applied. */
export const maxSentAppends = 2;

/**
 * How many events are retained, because a failover of the store can lose confirmed events. Retained events are appended
 * again. Older lost events are a gap in the chain, which resumes report.
 */
const maxRetainedEvents = 128;
const maxRetainedBytes = 256 * 1024;

/** An answer waits so long for a log that is away, or full. Then its client gets it without an event id. */
const maxAnswerWaitMs = 3_000;

const noEvents: Batch = [];
const noAppends: readonly SentAppend[] = [];

/**
 * The log of one session, as its owner writes it: numbers the events, appends them in order, and passes them to the
 * connections of their streams once they are stored (P5). Appends and reads are repeated while the store is away.
 *
 * Events that are added during an append go into the next one. A slow log thus sees few large appends instead of many
 * small ones. Only a portion that has to wait sends an append behind one whose outcome is not known. The log then stores
 * the later append only if it has stored the earlier one, because each append names the event before it.
 *
 * A store may lose events that it had confirmed. The log then appends those that it has retained again. Begins at the
 * start of an epoch.
 */
export class SessionLog implements Pick<EventLog, 'read'> {
  /** The streams of the session and their connections. */
  readonly streams: Streams;
  readonly #session: SessionCore;
  /** The newest event of each open stream, stored or not. */
  readonly #tails = new SparseMap<number, LogPosition>();
  readonly #storedTails: SparseMap<number, StreamTail>;
  readonly #pendingCalls: SparseMap<RequestId, PendingCall>;
  #newestStream: number;
  #queue: OwnEvent[] | undefined;
  /** The appends under way, in order. */
  #sent = noAppends;
  #retained = noEvents;
  #seq = 0;
  #appended = 0;
  #pendingBytes = 0;
  /** True once the store has the record of the session. Events that were added before wait for this. */
  #isOpen = false;
  #running: Promise<void> | undefined;
  #isRefused = false;
  #isDoubtful = false;
  /** True while an append is repeated that the log did not take. */
  #isRepeating = false;
  /** Listeners for the storing of events up to a number; in order. Undefined for none. */
  #waiters: { readonly seq: number; onSettled(isStored: boolean): void }[] | undefined;
  /** Listeners for the end of the current append. */
  #appendListeners: (() => void)[] | undefined;
  /** In order: the last answer of each stream of a POST. A client of one stream has a log in memory, which never waits. */
  #waitingAnswers: readonly WaitingAnswer[] | undefined;

  constructor(session: SessionCore) {
    const { earlier } = session;
    this.#session = session;
    for (const [stream, { newest, ended }] of earlier?.tails ?? []) if (!ended) this.#tails.set(stream, newest);
    this.#storedTails = new SparseMap(earlier?.tails);
    this.#pendingCalls = new SparseMap(earlier?.pending.map((call) => [call.id, call]));
    this.#newestStream = earlier?.newestStream ?? -1;
    this.streams = new Streams(session, this);
  }

  /** From now on events can be appended to the log. */
  open(): void {
    this.#isOpen = true;
    this.flush();
  }

  /**
   * False if nothing more can be kept for later. Events that wait for the log have the log's own limits (P8). The
   * server is not paused then, since the answer that opens the log would wait as well.
   */
  get hasRoom(): boolean {
    const { maxEvents, maxBytes } = this.#session.limits.logLimits;
    return this.#isOpen || (this.#pendingEvents < maxEvents && this.#pendingBytes < maxBytes);
  }

  /**
   * How much is handled before it is stored and sent. A client's lag plus two portions under way must never evict events
   * that it has not been sent. The log drops events by eighths, so the lag may be 1/8 and each portion 3/8. A larger
   * portion costs less for each event.
   */
  get portion(): { readonly messages: number; readonly bytes: number } {
    const { maxEvents, maxBytes } = this.#session.limits.logLimits;
    return { messages: (maxEvents * 3) / 8, bytes: maxBytes / 8 };
  }

  /** The position of the newest event that was added. */
  get position(): LogPosition {
    return { epoch: this.#session.epoch, seq: this.#seq };
  }

  /** Events that were added and are not known to be stored. */
  get #pendingEvents(): number {
    return this.#seq - this.#appended;
  }

  get #isAhead(): boolean {
    const { messages, bytes } = this.portion;
    return this.#pendingEvents > messages || this.#pendingBytes > bytes;
  }

  /** Adds an event to a stream; `last` if the stream ends with it. The next flush stores and sends it. */
  add(stream: number, data: Buffer, last: boolean, { opens, settles, live }: EventEffects = {}): void {
    const { epoch } = this.#session;
    this.#seq += 1;
    this.#pendingBytes += data.length;
    const seq = this.#seq;
    const event = { epoch, stream, seq, previous: this.#tails.get(stream), data, last };
    this.#queue ??= [];
    this.#queue.push(opens || settles !== undefined ? (Object.assign(event, { opens, settles }) as OwnEvent) : event);
    if (last) this.#tails.delete(stream);
    else this.#tails.set(stream, { epoch, seq });
    if (live !== undefined) this.streams.hold(stream, seq, live);
    if (last && settles !== undefined)
      this.#waitingAnswers = [...(this.#waitingAnswers ?? []), { seq, stream, since: performance.now() }];
  }

  /** Starts to append the added events. Call this once at the end of a burst. */
  flush(): void {
    // A portion may have sent an append after the loop's last check.
    const hasWork = this.#queue !== undefined || this.#sent.length > 0 || this.#isDoubtful;
    if (!this.#isOpen || this.#running !== undefined || this.#isRefused || !hasWork) return;
    this.#running = this.#appendAll()
      .catch((cause: unknown) => this.#refuse('failed', cause))
      .finally(() => {
        this.#running = undefined;
        this.#notifyAppended();
        this.flush(); // events added or sent after the loop's last check
      });
  }

  /** Stores and delivers a portion. Returns a promise to wait for if the log is slower than the server. */
  storePortion(): Promise<void> | undefined {
    this.flush();
    if (!this.#isOpen || !this.#isAhead) return undefined;
    const maySend = this.#running !== undefined && !this.#isRefused && !this.#isRepeating;
    if (maySend && this.#queue !== undefined && this.#sent.length < maxSentAppends) this.#send();
    return this.#waitWhileAhead();
  }

  /**
   * Two portions may be on their way to the log. The log stores one while the outcome of the other one is applied and
   * the next one is handled, so that neither side waits for the other.
   */
  async #waitWhileAhead(): Promise<void> {
    for (let step = this.#nextAppended(); this.#isAhead && step !== undefined; step = this.#nextAppended()) await step;
  }

  /** Calls back once, when all events added so far are stored, or can never be. */
  whenStored(onSettled: (isStored: boolean) => void): void {
    if (this.#isRefused || this.#seq === this.#appended) onSettled(!this.#isRefused);
    else {
      this.#waiters ??= [];
      this.#waiters.push({ seq: this.#seq, onSettled });
    }
  }

  /** The session was registered in a new term. Checks whether events that the store had confirmed are lost. */
  check(): void {
    this.#isDoubtful = true;
    this.flush();
  }

  /**
   * Registers the session again, because the store does not know it any more, or in a new term. It is registered as of
   * *before* the retained events, which are then appended again. Only older events are lost. Calls that the retained
   * events settled are pending in this state. If this owner is lost before it appends again, the next owner answers these
   * calls, and no client waits for an answer that nobody has.
   * @param isOutdated true once a later term registers the session; this one then ends with `outdated`
   */
  register(isOutdated?: () => boolean): Promise<Registration> {
    const tails = new Map(this.#storedTails);
    for (const { stream, previous } of this.#retained.toReversed()) {
      if (previous === undefined) tails.delete(stream);
      else tails.set(stream, { newest: previous, ended: false });
    }
    const pending = new Map(this.#retained.flatMap(({ settled }) => (settled ? [[settled.id, settled] as const] : [])));
    for (const call of this.#pendingCalls.values()) pending.set(call.id, call);
    const state: LogState = { tails, newestStream: this.#newestStream, pending: [...pending.values()] };
    return this.#session.registerRecord(this.#appended - this.#retained.length, state, isOutdated);
  }

  /**
   * As `EventLog.read`. Before a loss of confirmed events is believed, they are appended again. Otherwise a resuming
   * client would be told that its event never existed (P4).
   * @param maxWaitMs how long to wait for a store that is away; by default as long as the session uses the store
   */
  async read(
    key: string,
    stream: number,
    after: LogPosition | undefined,
    limit: number,
    maxWaitMs?: number,
  ): Promise<ReadOutcome> {
    const session = this.#session;
    const stop = maxWaitMs === undefined ? () => session.storeGone : AbortSignal.timeout(maxWaitMs);
    const read = (): Promise<ReadOutcome> =>
      retryWhileUnavailable(() => session.parts.store.log.read(key, stream, after, limit), stop);
    const found = await read();
    if (found.outcome === 'ok' ? !found.broken : !this.#isLost(found.outcome, stream, after)) return found;
    this.check();
    // The appends that may have been under way, and the one behind them.
    for (let ended = 0; ended <= maxSentAppends; ended += 1) await this.#nextAppended();
    return read();
  }

  /** For an earlier owner's stream only the newest event is known here. The log must know at least that one. */
  #isLost(outcome: ReadOutcome['outcome'], stream: number, after: LogPosition | undefined): boolean {
    if (after === undefined) return false;
    const { epoch } = this.#session;
    const isOwnEvent = after.epoch === epoch && after.seq > 0 && after.seq <= this.#appended;
    return isOwnEvent || (outcome === 'unknown_stream' && after.epoch < epoch && this.#storedTails.has(stream));
  }

  /**
   * Stores and delivers the added events, then ends all connections.
   * @param canResume true if their clients can continue on another instance
   */
  async close(canResume: boolean): Promise<void> {
    this.flush();
    while (this.#running !== undefined) await this.#running;
    this.streams.closeAll(canResume);
  }

  /** Resolves when the oldest append under way has ended, even if the next one has begun; undefined if there is none. */
  #nextAppended(): Promise<void> | undefined {
    return (
      this.#running &&
      new Promise((resolve) => {
        this.#appendListeners ??= [];
        this.#appendListeners.push(resolve);
      })
    );
  }

  /** Sends the queued events to the log, behind those that are under way. */
  #send(): void {
    const batch = this.#queue ?? noEvents;
    this.#queue = undefined;
    this.#isDoubtful = false;
    const expectedTail = this.#sent.reduce((tail, sent) => tail + sent.batch.length, this.#appended);
    const outcome = this.#append(expectedTail, batch);
    // `#appendAll` awaits the outcome, unless an earlier append is refused for good.
    outcome.catch(() => undefined);
    this.#sent = [...this.#sent, { batch, outcome }];
  }

  #append(expectedTail: number, events: Batch): Promise<AppendOutcome> {
    const { key, epoch, parts } = this.#session;
    return this.#session.retry(
      () => parts.store.log.append(key, epoch, expectedTail, events),
      () => this.#sendWaitingAnswers(),
    );
  }

  async #appendAll(): Promise<void> {
    /** True if the log may have refused what was sent behind an append that it did not take at first. */
    let isSuspect = false;
    for (;;) {
      if (this.#sent.length === 0) {
        if (this.#queue === undefined && !this.#isDoubtful) return;
        this.#send();
        isSuspect = false;
      }
      const [{ batch, outcome }] = this.#sent as readonly [SentAppend];
      const known = await outcome;
      if (isSuspect || !isTaken(known)) {
        this.#isRepeating = true;
        const refusal = await this.#repeat(batch, isSuspect ? undefined : known);
        if (refusal !== undefined) return this.#refuse(refusal);
        this.#isRepeating = false;
        isSuspect = true;
      }
      this.#sent = this.#sent.length === 1 ? noAppends : this.#sent.slice(1);
      if (batch.length > 0) this.#noteStored(batch);
    }
  }

  /**
   * Appends until the log has the whole batch. Returns the reason if it never will.
   * @param outcome of the first attempt; undefined if that attempt says nothing
   */
  async #repeat(batch: Batch, outcome: AppendOutcome | undefined): Promise<WriteRefusal | undefined> {
    let expectedTail = this.#appended;
    let events = batch;
    let before = noEvents;
    let result = outcome ?? (await this.#append(expectedTail, events));
    while (!isTaken(result)) {
      if (result.outcome === 'fenced') return 'fenced';
      if (result.outcome === 'gap') {
        const { tail } = result;
        if (tail >= expectedTail) return 'gap'; // nobody else writes under this epoch
        expectedTail = tail;
        before = this.#retained.filter(({ seq }) => seq > tail);
        events = [...before, ...batch];
      } else {
        const registered = await this.register();
        // After `outdated`, a later term has registered it meanwhile.
        if (registered !== 'registered' && registered !== 'outdated') return registered;
        if (registered === 'registered') {
          expectedTail = this.#appended;
          before = noEvents;
          events = batch;
        }
      }
      result = await this.#append(expectedTail, events);
    }
    if (before.length > 0) this.streams.deliver(before); // a reader has missed them meanwhile
    return undefined;
  }

  /** The events are in the log, and may be sent now (P5). */
  #noteStored(batch: Batch): void {
    this.#appended += batch.length;
    for (const { data } of batch) this.#pendingBytes -= data.length;
    this.#updateState(batch);
    this.#retained = newestOf(this.#retained.concat(batch));
    if (this.#waitingAnswers !== undefined) {
      const waiting = this.#waitingAnswers.filter(({ seq }) => seq > this.#appended);
      this.#waitingAnswers = waiting.length === 0 ? undefined : waiting;
    }
    this.streams.deliver(batch);
    this.#notifyAppended();
    this.#notifyStored(true);
  }

  #updateState(batch: Batch): void {
    const { epoch } = this.#session;
    for (let index = 0; index < batch.length; index += 1) {
      const event = batch[index] as OwnEvent;
      const { stream, seq, last, opens, settles } = event;
      this.#newestStream = Math.max(this.#newestStream, stream);
      if (opens !== undefined) for (const call of opens) this.#pendingCalls.set(call.id, call);
      if (settles !== undefined) this.#settle(settles, event);
      // The log forgets an ended stream with its last event, so its tail is not needed here either.
      if (last) this.#storedTails.delete(stream);
      // One tail for consecutive events of one stream.
      else if (batch[index + 1]?.stream !== stream)
        this.#storedTails.set(stream, { newest: { epoch, seq }, ended: false });
    }
  }

  #settle(id: RequestId, event: OwnEvent): void {
    const call = this.#pendingCalls.get(id);
    if (call === undefined) return;
    this.#pendingCalls.delete(id);
    event.settled = { ...call, text: undefined };
  }

  /**
   * An attempt to append has failed. The clients of streams whose answers have waited for too long get all that they
   * lack, without event ids: no call waits for an answer that has arrived. The connection of a POST ends with it. The log
   * gets these events when it takes some again, for a client that loses its connection meanwhile.
   */
  #sendWaitingAnswers(): void {
    const latest = performance.now() - maxAnswerWaitMs;
    const due = this.#waitingAnswers?.filter(({ since }) => since <= latest) ?? [];
    if (due.length === 0) return;
    this.#waitingAnswers = this.#waitingAnswers?.slice(due.length);
    const pending = [...this.#sent.flatMap(({ batch }) => batch), ...(this.#queue ?? noEvents)];
    for (const { stream } of due) {
      const ofStream = pending.filter((event) => event.stream === stream);
      this.streams.sendUnstored(stream, (after) =>
        after === undefined ? ofStream : ofStream.filter((event) => compareLogPositions(event, after) > 0),
      );
    }
  }

  /** The log takes no more events from here. */
  #refuse(why: WriteRefusal, cause?: unknown): void {
    this.#isRefused = true;
    const session = this.#session;
    // The log refuses events of a session that was removed from it.
    if (session.endReason === undefined) {
      if (why === 'fenced') session.endFor('moved');
      else if (why === 'ended') session.endFor('deleted');
      else session.fail(new Error(`the event log answered ${why}`, { cause }));
    }
    this.#notifyStored(false);
  }

  #notifyStored(isStored: boolean): void {
    if (this.#waiters === undefined) return;
    const due = this.#waiters.filter(({ seq }) => !isStored || seq <= this.#appended);
    const waiting = this.#waiters.slice(due.length);
    this.#waiters = waiting.length === 0 ? undefined : waiting;
    for (const { onSettled } of due) onSettled(isStored);
  }

  #notifyAppended(): void {
    const listeners = this.#appendListeners;
    this.#appendListeners = undefined;
    for (const listener of listeners ?? []) listener();
  }
}

/** True if the log has the events of the append. */
const isTaken = ({ outcome }: AppendOutcome): boolean => outcome === 'stored' || outcome === 'already';

/** The newest events, within the limits of what is retained. */
function newestOf(events: Batch): Batch {
  let bytes = 0;
  for (let from = events.length; from > 0; from -= 1) {
    bytes += (events[from - 1] as OwnEvent).data.length;
    if (events.length - from + 1 > maxRetainedEvents || bytes > maxRetainedBytes) return events.slice(from);
  }
  return events;
}
