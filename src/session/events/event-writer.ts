import type { RequestId } from '../../protocol/faults.ts';
import type { LogPosition } from '../../protocol/wire/event-id.ts';
import type { AppendOutcome, EventLog, NewEvent, PendingCall, StoredEvent } from '../../store/event-log.ts';
import type { LogState, Registration, StreamTail } from '../../store/session-records.ts';
import { SparseMap } from '../../util/sparse-map.ts';

/** Why a writer may write no more. `fenced`: a newer owner has the session. `ended`: the session was ended elsewhere. */
export type WriteRefusal = 'fenced' | 'ended' | 'gap' | 'failed';

/** What a writer needs: the log, the session in it, the epoch that it writes under, and whom to tell. */
export interface EventWriterOptions {
  readonly log: EventLog;
  readonly key: string;
  readonly epoch: number;
  /** Where the streams stand that earlier owners wrote; nothing for a new session. */
  readonly earlier?: LogState;
  /** Events are in the log and may be sent now (P5). In order; one call for each append. */
  onStored(events: readonly StoredEvent[]): void;
  /** Events that were in the log before, and lost there, are in it again: who read it meanwhile has missed them. */
  onReappended?(events: readonly StoredEvent[]): void;
  /** The log does not know the session any more: says what it is again, with `state`. */
  register(): Promise<Registration>;
  /** The log did not take the events: this instance may no longer write to the session. */
  onRefused(why: WriteRefusal, cause?: unknown): void;
}

/** What an event does to the table of pending calls. */
export interface EventEffects {
  readonly opens?: readonly PendingCall[] | undefined;
  readonly settles?: RequestId | undefined;
}

/**
 * A failover of the store can lose what it had already confirmed: so much of it is kept here to be said again. What is
 * older is a break in the chain, which resumes tell.
 */
const maxHeldEvents = 128;
const maxHeldBytes = 256 * 1024;

type Batch = readonly (NewEvent & StoredEvent)[];

/** What a log has of a session, and up to which event of the epoch. */
interface Stored {
  readonly tail: number;
  readonly log: LogState;
}

const nothingEarlier: LogState = { tails: new Map(), newestStream: -1, pending: [] };

/**
 * Numbers the events of one session and appends them, in order, one append at a time: what is added while one is under
 * way goes into the next, so that a slow log sees few large appends and not many small ones. Begins at the start of an epoch.
 */
export class EventWriter {
  readonly #options: EventWriterOptions;
  /** The newest event of each open stream, stored or not. */
  readonly #tails = new SparseMap<number, LogPosition>();
  readonly #storedTails: SparseMap<number, StreamTail>;
  readonly #pendingCalls: SparseMap<RequestId, PendingCall>;
  #newestStream: number;
  #queue: (NewEvent & StoredEvent)[] = [];
  #held: (NewEvent & StoredEvent)[] = [];
  #seq = 0;
  #appended = 0;
  #pendingBytes = 0;
  #running: Promise<void> | undefined;
  #isRefused = false;
  #isDoubtful = false;
  #askedAt: number | undefined;
  /** Who waits for events up to a number to be stored; in order. */
  #unstored: { readonly seq: number; tell(isStored: boolean): void }[] = [];
  /** Who waits for the append that is under way. */
  #waiting: (() => void)[] = [];

  constructor(options: EventWriterOptions) {
    const { earlier = nothingEarlier } = options;
    this.#options = options;
    for (const [stream, { newest, ended }] of earlier.tails) if (!ended) this.#tails.set(stream, newest);
    this.#storedTails = new SparseMap(earlier.tails);
    this.#pendingCalls = new SparseMap(earlier.pending.map((call) => [call.id, call]));
    this.#newestStream = earlier.newestStream;
  }

  /** What was added and is not known to be stored. */
  get pending(): { readonly events: number; readonly bytes: number } {
    return { events: this.#seq - this.#appended, bytes: this.#pendingBytes };
  }

  /** What is known to be stored: the number of the newest event of this epoch, and where the streams stand. */
  get stored(): Stored {
    return { tail: this.#appended, log: this.#logWith(this.#storedTails) };
  }

  /**
   * The same as it was before what is held here to be said again: what a store that has lost its data is told, so that it gets
   * the held events anew, and only what is older is lost.
   */
  get recoveryState(): Stored {
    const tails = new Map(this.#storedTails);
    for (const { stream, previous } of this.#held.toReversed()) {
      if (previous === undefined) tails.delete(stream);
      else tails.set(stream, { newest: previous, ended: false });
    }
    return { tail: this.#appended - this.#held.length, log: this.#logWith(tails) };
  }

  /** How long the log has not answered, in milliseconds; 0 if nothing is asked of it. */
  get waitingMs(): number {
    return this.#askedAt === undefined ? 0 : performance.now() - this.#askedAt;
  }

  /** Queues an event of a stream; `last` if the stream ends with it. */
  add(stream: number, data: Buffer, last: boolean, { opens, settles }: EventEffects = {}): void {
    const { epoch } = this.#options;
    this.#seq += 1;
    this.#pendingBytes += data.length;
    const seq = this.#seq;
    const event = { epoch, stream, seq, previous: this.#tails.get(stream), data, last };
    this.#queue.push(
      opens || settles !== undefined ? (Object.assign(event, { opens, settles }) as NewEvent & StoredEvent) : event,
    );
    if (last) this.#tails.delete(stream);
    else this.#tails.set(stream, { epoch, seq });
  }

  /** Starts to append what was added. Call it once at the end of a burst. */
  flush(): void {
    if (this.#running !== undefined || this.#isRefused || (this.#queue.length === 0 && !this.#isDoubtful)) return;
    this.#running = this.#appendAll()
      .catch((cause: unknown) => this.#refuse('failed', cause))
      .finally(() => {
        this.#running = undefined;
        this.#askedAt = undefined;
        this.#tellAppended();
        this.flush(); // what was added after the last look at the queue
      });
  }

  /** Tells once when all that was added so far is in the log, or that it will never be. */
  whenStored(tell: (isStored: boolean) => void): void {
    if (this.#isRefused || this.#seq === this.#appended) tell(!this.#isRefused);
    else this.#unstored.push({ seq: this.#seq, tell });
  }

  /** The store may have lost what it had confirmed: asks, and says again what is held here of it. */
  check(): void {
    this.#isDoubtful = true;
    this.flush();
  }

  /** Resolves when the append that is under way has ended, while the next one may be; undefined if there is none. */
  appended(): Promise<void> | undefined {
    return this.#running && new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves when nothing is queued or under way any more. */
  async settled(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #appendAll(): Promise<void> {
    while (this.#queue.length > 0 || this.#isDoubtful) {
      const batch = this.#queue;
      this.#queue = [];
      this.#isDoubtful = false;
      this.#askedAt = performance.now();
      const refusal = await this.#appendOne(batch);
      if (refusal !== undefined) return this.#refuse(refusal);
      if (batch.length === 0) continue;
      this.#appended += batch.length;
      for (const { data } of batch) this.#pendingBytes -= data.length;
      this.#note(batch);
      this.#hold(batch);
      this.#options.onStored(batch);
      this.#tellAppended();
      this.#tellStored(true);
    }
  }

  /** Appends until the log has all of the batch. Returns why it will never have it. */
  async #appendOne(batch: Batch): Promise<WriteRefusal | undefined> {
    const { log, key, epoch, register } = this.#options;
    let expectedTail = this.#appended;
    let events = batch;
    for (;;) {
      const said: AppendOutcome = await log.append(key, epoch, expectedTail, events);
      if (said.outcome === 'gap') {
        const { tail } = said;
        if (tail >= expectedTail) return 'gap'; // nobody else writes under this epoch
        expectedTail = tail;
        events = [...this.#held.filter((event) => event.seq > tail), ...batch];
      } else if (said.outcome === 'no_record') {
        const registered = await register();
        if (registered === 'outdated') continue; // a later term has registered it meanwhile
        if (registered !== 'registered') return registered;
        expectedTail = this.#appended;
        events = batch;
      } else {
        if (said.outcome === 'fenced') return 'fenced';
        if (events.length > batch.length) this.#options.onReappended?.(events.slice(0, events.length - batch.length));
        return undefined;
      }
    }
  }

  #note(batch: Batch): void {
    const { epoch } = this.#options;
    for (let index = 0; index < batch.length; index += 1) {
      const { stream, seq, last, opens, settles } = batch[index] as Batch[number];
      this.#newestStream = Math.max(this.#newestStream, stream);
      if (opens !== undefined) for (const call of opens) this.#pendingCalls.set(call.id, call);
      if (settles !== undefined) this.#pendingCalls.delete(settles);
      // The log forgets an ended stream with its last event; here nothing more is to be said of it.
      if (last) this.#storedTails.delete(stream);
      // One tail for a run of events of one stream.
      else if (batch[index + 1]?.stream !== stream)
        this.#storedTails.set(stream, { newest: { epoch, seq }, ended: false });
    }
  }

  #hold(batch: Batch): void {
    const held = this.#held.concat(batch).slice(-maxHeldEvents);
    let from = held.length;
    for (let bytes = 0; from > 0; from -= 1) {
      bytes += (held[from - 1] as StoredEvent).data.length;
      if (bytes > maxHeldBytes) break;
    }
    this.#held = from > 0 ? held.slice(from) : held;
  }

  #refuse(why: WriteRefusal, cause?: unknown): void {
    this.#isRefused = true;
    this.#options.onRefused(why, cause);
    this.#tellStored(false);
  }

  #tellStored(isStored: boolean): void {
    const due = this.#unstored.filter(({ seq }) => !isStored || seq <= this.#appended);
    if (due.length === 0) return;
    this.#unstored = this.#unstored.slice(due.length);
    for (const { tell } of due) tell(isStored);
  }

  #tellAppended(): void {
    const told = this.#waiting;
    this.#waiting = [];
    for (const tell of told) tell();
  }

  #logWith(tails: ReadonlyMap<number, StreamTail>): LogState {
    return { tails, newestStream: this.#newestStream, pending: [...this.#pendingCalls.values()] };
  }
}
