import type { RequestId } from '../../protocol/faults.ts';
import { compareLogPositions, type LogPosition } from '../../protocol/wire/event-id.ts';
import type { AppendOutcome, EventLog, PendingCall, StoredEvent } from '../../store/event-log.ts';
import type { LogState, Registration, StreamTail } from '../../store/session-records.ts';
import { SparseMap } from '../../util/sparse-map.ts';
import { type Batch, type OwnEvent, retainedOf } from './retained-events.ts';

/**
 * Why a writer may write no more. `fenced`: a newer owner has the session. `ended`: the session was ended elsewhere.
 */
export type WriteRefusal = 'fenced' | 'ended' | 'gap' | 'failed';

/** The session whose events a writer numbers. */
export interface WriterSession {
  readonly log: EventLog;
  readonly key: string;
  readonly epoch: number;
  /** The log state of earlier owners; undefined for a new session. */
  readonly earlier: LogState | undefined;
}

/** Receives the outcome of appends. */
export interface WriterListener {
  /** Events are in the log and may be sent now (P5). In order; one call for each append. */
  onStored(events: readonly StoredEvent[]): void;
  /** Events that the log had lost are in it again. A reader has missed them meanwhile. */
  onReappended(events: readonly StoredEvent[]): void;
  /** Registers the session again with `recoveryState`, because the log does not know it any more. */
  register(): Promise<Registration>;
  /** The log did not take the events. This instance may no longer write to the session. */
  onRefused(why: WriteRefusal, cause?: unknown): void;
}

/** The effect of an event on the table of pending calls. */
export interface EventEffects {
  readonly opens?: readonly PendingCall[] | undefined;
  readonly settles?: RequestId | undefined;
  /** The text for a connection that follows the stream now, if the log gets another one in its place. */
  readonly live?: Buffer | undefined;
}

/** An append whose outcome is not known, or not applied yet. */
interface SentAppend {
  readonly batch: Batch;
  readonly outcome: Promise<AppendOutcome>;
}

/** How many appends may be under way. The log works on one while the outcome of the other one is applied. */
export const maxSentAppends = 2;

/** The state of a session's log, up to an event of this epoch. */
interface Stored {
  readonly tail: number;
  readonly log: LogState;
}

const noEarlierState: LogState = { tails: new Map(), newestStream: -1, pending: [] };

/**
 * Numbers the events of one session and appends them in order. Events that are added during an append go into the next
 * one. A slow log thus sees few large appends instead of many small ones. Only `pipeline` sends an append behind one
 * whose outcome is not known. The log then stores the later append only if it has stored the earlier one, because each
 * append names the event before it. Begins at the start of an epoch.
 */
export class EventWriter {
  readonly #session: WriterSession;
  readonly #listener: WriterListener;
  /** The newest event of each open stream, stored or not. */
  readonly #tails = new SparseMap<number, LogPosition>();
  readonly #storedTails: SparseMap<number, StreamTail>;
  readonly #pendingCalls: SparseMap<RequestId, PendingCall>;
  #newestStream: number;
  #queue: OwnEvent[] = [];
  /** The appends under way, in order. */
  readonly #sent: SentAppend[] = [];
  #retained: Batch = [];
  #seq = 0;
  #appended = 0;
  #pendingBytes = 0;
  #running: Promise<void> | undefined;
  #isRefused = false;
  #isDoubtful = false;
  /** True while an append is repeated that the log did not take. */
  #isRepeating = false;
  #calledAt: number | undefined;
  /** Listeners for the storing of events up to a number; in order. */
  #unstored: { readonly seq: number; onSettled(isStored: boolean): void }[] = [];
  /** Listeners for the end of the current append. */
  #appendListeners: (() => void)[] = [];

  constructor(session: WriterSession, listener: WriterListener) {
    const { earlier = noEarlierState } = session;
    this.#session = session;
    this.#listener = listener;
    for (const [stream, { newest, ended }] of earlier.tails) if (!ended) this.#tails.set(stream, newest);
    this.#storedTails = new SparseMap(earlier.tails);
    this.#pendingCalls = new SparseMap(earlier.pending.map((call) => [call.id, call]));
    this.#newestStream = earlier.newestStream;
  }

  /** Events that were added and are not known to be stored. */
  get pending(): { readonly events: number; readonly bytes: number } {
    return { events: this.#seq - this.#appended, bytes: this.#pendingBytes };
  }

  /** The events of a stream after a position that were added and are not known to be stored, in order. */
  unstoredEvents(stream: number, after: LogPosition | undefined): readonly StoredEvent[] {
    const all = [...this.#sent.flatMap(({ batch }) => batch), ...this.#queue];
    const events = all.filter((event) => event.stream === stream);
    return after === undefined ? events : events.filter((event) => compareLogPositions(event, after) > 0);
  }

  /** The known state of the log: the number of the newest stored event of this epoch, and the state of the streams. */
  get stored(): Stored {
    return { tail: this.#appended, log: this.#logWith(this.#storedTails) };
  }

  /**
   * State to register after the store lost data: as of *before* the retained events, which are then appended again.
   * Only older events are lost. Calls that the retained events settled are pending in this state. If this owner is lost
   * before it appends again, the next owner answers these calls, and no client waits for an answer that nobody has.
   */
  get recoveryState(): Stored {
    const tails = new Map(this.#storedTails);
    for (const { stream, previous } of this.#retained.toReversed()) {
      if (previous === undefined) tails.delete(stream);
      else tails.set(stream, { newest: previous, ended: false });
    }
    const settled = this.#retained.flatMap((event) => event.settled ?? []);
    return { tail: this.#appended - this.#retained.length, log: this.#logWith(tails, settled) };
  }

  /** How long the log has not answered, in milliseconds; 0 if no append is under way. */
  get waitingMs(): number {
    return this.#calledAt === undefined ? 0 : performance.now() - this.#calledAt;
  }

  /** Queues an event of a stream; `last` if the stream ends with it. */
  add(stream: number, data: Buffer, last: boolean, { opens, settles }: EventEffects = {}): void {
    const { epoch } = this.#session;
    this.#seq += 1;
    this.#pendingBytes += data.length;
    const seq = this.#seq;
    const event = { epoch, stream, seq, previous: this.#tails.get(stream), data, last };
    this.#queue.push(opens || settles !== undefined ? (Object.assign(event, { opens, settles }) as OwnEvent) : event);
    if (last) this.#tails.delete(stream);
    else this.#tails.set(stream, { epoch, seq });
  }

  /** Starts to append the added events. Call this once at the end of a burst. */
  flush(): void {
    // `pipeline` may have sent an append after the loop's last check.
    const hasWork = this.#queue.length > 0 || this.#sent.length > 0 || this.#isDoubtful;
    if (this.#running !== undefined || this.#isRefused || !hasWork) return;
    this.#running = this.#appendAll()
      .catch((cause: unknown) => this.#refuse('failed', cause))
      .finally(() => {
        this.#running = undefined;
        this.#calledAt = undefined;
        this.#notifyAppended();
        this.flush(); // events added or sent after the loop's last check
      });
  }

  /**
   * Appends the added events without waiting for the append under way. For a writer whose next events have to wait
   * until the log has taken some: they cannot join this append anyway.
   */
  pipeline(): void {
    const isPossible = this.#running !== undefined && !this.#isRefused && !this.#isRepeating;
    if (isPossible && this.#queue.length > 0 && this.#sent.length < maxSentAppends) this.#send();
  }

  /** Calls back once, when all events added so far are stored, or can never be. */
  whenStored(onSettled: (isStored: boolean) => void): void {
    if (this.#isRefused || this.#seq === this.#appended) onSettled(!this.#isRefused);
    else this.#unstored.push({ seq: this.#seq, onSettled });
  }

  /** The store may have lost confirmed events: checks, and appends the retained ones again. */
  check(): void {
    this.#isDoubtful = true;
    this.flush();
  }

  /** Resolves when the oldest append under way has ended, even if the next one has begun; undefined if there is none. */
  appended(): Promise<void> | undefined {
    return this.#running && new Promise((resolve) => this.#appendListeners.push(resolve));
  }

  /** Resolves when nothing is queued or under way any more. */
  async settled(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** Sends the queued events to the log, behind those that are under way. */
  #send(): void {
    const { log, key, epoch } = this.#session;
    const batch = this.#queue;
    this.#queue = [];
    this.#isDoubtful = false;
    const expectedTail = this.#sent.reduce((tail, sent) => tail + sent.batch.length, this.#appended);
    const outcome = log.append(key, epoch, expectedTail, batch);
    // `#appendAll` awaits the outcome, unless an earlier append is refused for good.
    outcome.catch(() => undefined);
    this.#sent.push({ batch, outcome });
  }

  async #appendAll(): Promise<void> {
    /** True if the log may have refused what was sent behind an append that it did not take at first. */
    let isSuspect = false;
    for (;;) {
      if (this.#sent.length === 0) {
        if (this.#queue.length === 0 && !this.#isDoubtful) return;
        this.#send();
        isSuspect = false;
      }
      const [{ batch, outcome }] = this.#sent as [SentAppend];
      this.#calledAt = performance.now();
      const known = await outcome;
      if (isSuspect || !isTaken(known)) {
        this.#isRepeating = true;
        const refusal = await this.#repeat(batch, isSuspect ? undefined : known);
        if (refusal !== undefined) return this.#refuse(refusal);
        this.#isRepeating = false;
        isSuspect = true;
      }
      this.#sent.shift();
      if (batch.length === 0) continue;
      this.#appended += batch.length;
      for (const { data } of batch) this.#pendingBytes -= data.length;
      this.#updateState(batch);
      this.#retain(batch);
      this.#listener.onStored(batch);
      this.#notifyAppended();
      this.#notifyStored(true);
    }
  }

  /**
   * Appends until the log has the whole batch. Returns the reason if it never will.
   * @param outcome of the first attempt; undefined if that attempt says nothing
   */
  async #repeat(batch: Batch, outcome: AppendOutcome | undefined): Promise<WriteRefusal | undefined> {
    const { log, key, epoch } = this.#session;
    let expectedTail = this.#appended;
    let events: Batch = batch;
    let before: Batch = [];
    let result = outcome ?? (await log.append(key, epoch, expectedTail, events));
    while (!isTaken(result)) {
      if (result.outcome === 'fenced') return 'fenced';
      if (result.outcome === 'gap') {
        const { tail } = result;
        if (tail >= expectedTail) return 'gap'; // nobody else writes under this epoch
        expectedTail = tail;
        before = this.#retained.filter(({ seq }) => seq > tail);
        events = [...before, ...batch];
      } else {
        const registered = await this.#listener.register();
        // After `outdated`, a later term has registered it meanwhile.
        if (registered !== 'registered' && registered !== 'outdated') return registered;
        if (registered === 'registered') {
          expectedTail = this.#appended;
          before = [];
          events = batch;
        }
      }
      result = await log.append(key, epoch, expectedTail, events);
    }
    if (before.length > 0) this.#listener.onReappended(before);
    return undefined;
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
      // One tail for a run of events of one stream.
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

  #retain(batch: Batch): void {
    this.#retained = retainedOf(this.#retained.concat(batch));
  }

  #refuse(why: WriteRefusal, cause?: unknown): void {
    this.#isRefused = true;
    this.#listener.onRefused(why, cause);
    this.#notifyStored(false);
  }

  #notifyStored(isStored: boolean): void {
    const due = this.#unstored.filter(({ seq }) => !isStored || seq <= this.#appended);
    if (due.length === 0) return;
    this.#unstored = this.#unstored.slice(due.length);
    for (const { onSettled } of due) onSettled(isStored);
  }

  #notifyAppended(): void {
    const listeners = this.#appendListeners;
    this.#appendListeners = [];
    for (const listener of listeners) listener();
  }

  /** @param settled calls that are pending besides those of now, unless their ids are in use again */
  #logWith(tails: ReadonlyMap<number, StreamTail>, settled: readonly PendingCall[] = []): LogState {
    const pending = new Map(settled.map((call) => [call.id, call]));
    for (const call of this.#pendingCalls.values()) pending.set(call.id, call);
    return { tails, newestStream: this.#newestStream, pending: [...pending.values()] };
  }
}

/** True if the log has the events of the append. */
const isTaken = ({ outcome }: AppendOutcome): boolean => outcome === 'stored' || outcome === 'already';
