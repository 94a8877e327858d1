import type { Position } from '../protocol/event-id.ts';
import type { RequestId } from '../protocol/faults.ts';
import type { AppendOutcome, EventLog, NewEvent, PendingCall, StoredEvent } from '../store/event-log.ts';
import type { LogState, Registration, StreamTail } from '../store/session-records.ts';

/** Why a writer may write no more. `fenced`: a newer owner has the session. `ended`: the session was ended elsewhere. */
export type Refusal = 'fenced' | 'ended' | 'gap' | 'failed';

/** What a writer needs: the log, the session in it, the epoch that it writes under, and whom to tell. */
export interface EventWriterOptions {
  readonly log: EventLog;
  readonly key: string;
  readonly epoch: number;
  /** Where the streams stand that earlier owners wrote; nothing for a new session. */
  readonly earlier?: LogState;
  /** Events are in the log and may be sent now (P5). In order; one call for each append. */
  onStored(events: readonly StoredEvent[]): void;
  /** The log does not know the session any more: says what it is again, with `state`. */
  register(): Promise<Registration>;
  /** The log did not take the events: this instance may no longer write to the session. */
  onRefused(why: Refusal, cause?: unknown): void;
}

/** What an event does to the table of pending calls. */
export interface EventEffects {
  readonly opens?: readonly PendingCall[] | undefined;
  readonly settles?: RequestId | undefined;
}

/**
 * Numbers the events of one session and appends them, in order, one append at a time: what is added while one is under
 * way goes into the next, so that a slow log sees few large appends and not many small ones.
 */
export interface EventWriter {
  /** Queues an event of a stream; `last` if the stream ends with it. */
  add(stream: number, data: Buffer, last: boolean, effects?: EventEffects): void;
  /** Starts to append what was added. Call it once at the end of a burst. */
  flush(): void;
  /** Tells once when all that was added so far is in the log, or that it will never be. */
  whenStored(tell: (isStored: boolean) => void): void;
  /** The store may have lost what it had confirmed: asks, and says again what is held here of it. */
  check(): void;
  /** What was added and is not known to be stored. */
  readonly pending: { readonly events: number; readonly bytes: number };
  /** What is known to be stored: the number of the newest event of this epoch, and where the streams stand. */
  readonly stored: { readonly tail: number; readonly log: LogState };
  /**
   * The same as it was before what is held here to be said again: what a store that has lost its data is told, so that it gets
   * the held events anew, and only what is older is lost.
   */
  readonly sayable: { readonly tail: number; readonly log: LogState };
  /** How long the log has not answered, in milliseconds; 0 if nothing is asked of it. */
  readonly waitingMs: number;
  /** Resolves when the append that is under way has ended, while the next one may be; undefined if there is none. */
  appended(): Promise<void> | undefined;
  /** Resolves when nothing is queued or under way any more. */
  settled(): Promise<void>;
}

/**
 * A failover of the store can lose what it had already confirmed: so much of it is kept here to be said again. What is
 * older is a break in the chain, which resumes tell.
 */
const maxHeldEvents = 128;
const maxHeldBytes = 256 * 1024;

type Batch = readonly (NewEvent & StoredEvent)[];

const nothingEarlier: LogState = { tails: new Map(), newestStream: -1, pending: [] };

/** An event writer for a session at the beginning of an epoch. */
export function createEventWriter(options: EventWriterOptions): EventWriter {
  const { log, key, epoch, earlier = nothingEarlier, onStored, onRefused, register } = options;
  /** The newest event of each open stream, stored or not. */
  const tails = new Map<number, Position>();
  for (const [stream, { newest, ended }] of earlier.tails) if (!ended) tails.set(stream, newest);
  const storedTails = new Map<number, StreamTail>(earlier.tails);
  const pendingCalls = new Map<RequestId, PendingCall>(earlier.pending.map((call) => [call.id, call]));
  let newestStream = earlier.newestStream;
  let queue: (NewEvent & StoredEvent)[] = [];
  let held: (NewEvent & StoredEvent)[] = [];
  let seq = 0;
  let appended = 0;
  let pendingBytes = 0;
  let running: Promise<void> | undefined;
  let isRefused = false;
  let isDoubtful = false;
  let askedAt: number | undefined;
  /** Who waits for events up to a number to be stored; in order. */
  let unstored: { readonly seq: number; tell(isStored: boolean): void }[] = [];
  /** Who waits for the append that is under way. */
  let waiting: (() => void)[] = [];

  const tellStored = (isStored: boolean): void => {
    const due = unstored.filter(({ seq: number }) => !isStored || number <= appended);
    if (due.length === 0) return;
    unstored = unstored.slice(due.length);
    for (const { tell } of due) tell(isStored);
  };

  const tellAppended = (): void => {
    const told = waiting;
    waiting = [];
    for (const tell of told) tell();
  };

  const refuse = (why: Refusal, cause?: unknown): void => {
    isRefused = true;
    onRefused(why, cause);
    tellStored(false);
  };

  /** Appends until the log has all of the batch. Returns why it will never have it. */
  const appendOne = async (batch: Batch): Promise<Refusal | undefined> => {
    let expectedTail = appended;
    let events = batch;
    for (;;) {
      const said: AppendOutcome = await log.append(key, epoch, expectedTail, events);
      if (said.outcome === 'gap') {
        const { tail } = said;
        if (tail >= expectedTail) return 'gap'; // nobody else writes under this epoch
        expectedTail = tail;
        events = [...held.filter((event) => event.seq > tail), ...batch];
      } else if (said.outcome === 'no_record') {
        const registered = await register();
        if (registered === 'outdated') continue; // a later term has registered it meanwhile
        if (registered !== 'registered') return registered;
        expectedTail = appended;
        events = batch;
      } else return said.outcome === 'fenced' ? 'fenced' : undefined;
    }
  };

  const note = (batch: Batch): void => {
    for (let index = 0; index < batch.length; index += 1) {
      const { stream, seq: number, last, opens, settles } = batch[index] as Batch[number];
      newestStream = Math.max(newestStream, stream);
      if (opens !== undefined) for (const call of opens) pendingCalls.set(call.id, call);
      if (settles !== undefined) pendingCalls.delete(settles);
      // The log forgets an ended stream with its last event; here nothing more is to be said of it.
      if (last) storedTails.delete(stream);
      // One tail for a run of events of one stream.
      else if (batch[index + 1]?.stream !== stream)
        storedTails.set(stream, { newest: { epoch, seq: number }, ended: false });
    }
  };

  const hold = (batch: Batch): void => {
    held = held.concat(batch).slice(-maxHeldEvents);
    let from = held.length;
    for (let bytes = 0; from > 0; from -= 1) {
      bytes += (held[from - 1] as StoredEvent).data.length;
      if (bytes > maxHeldBytes) break;
    }
    if (from > 0) held = held.slice(from);
  };

  const appendAll = async (): Promise<void> => {
    while (queue.length > 0 || isDoubtful) {
      const batch = queue;
      queue = [];
      isDoubtful = false;
      askedAt = performance.now();
      const refusal = await appendOne(batch);
      if (refusal !== undefined) return refuse(refusal);
      if (batch.length === 0) continue;
      appended += batch.length;
      for (const { data } of batch) pendingBytes -= data.length;
      note(batch);
      hold(batch);
      onStored(batch);
      tellAppended();
      tellStored(true);
    }
  };

  const start = (): void => {
    if (running !== undefined || isRefused || (queue.length === 0 && !isDoubtful)) return;
    running = appendAll()
      .catch((cause: unknown) => refuse('failed', cause))
      .finally(() => {
        running = undefined;
        askedAt = undefined;
        tellAppended();
        start(); // what was added after the last look at the queue
      });
  };

  return {
    add(stream, data, last, { opens, settles } = {}) {
      seq += 1;
      pendingBytes += data.length;
      const event = { epoch, stream, seq, previous: tails.get(stream), data, last };
      queue.push(
        opens || settles !== undefined ? (Object.assign(event, { opens, settles }) as NewEvent & StoredEvent) : event,
      );
      if (last) tails.delete(stream);
      else tails.set(stream, { epoch, seq });
    },
    flush: start,
    whenStored(tell) {
      if (isRefused || seq === appended) tell(!isRefused);
      else unstored.push({ seq, tell });
    },
    check() {
      isDoubtful = true;
      start();
    },
    get pending() {
      return { events: seq - appended, bytes: pendingBytes };
    },
    get stored() {
      return { tail: appended, log: { tails: storedTails, newestStream, pending: [...pendingCalls.values()] } };
    },
    get sayable() {
      const tails = new Map(storedTails);
      for (const { stream, previous } of held.toReversed()) {
        if (previous === undefined) tails.delete(stream);
        else tails.set(stream, { newest: previous, ended: false });
      }
      return { tail: appended - held.length, log: { tails, newestStream, pending: [...pendingCalls.values()] } };
    },
    get waitingMs() {
      return askedAt === undefined ? 0 : performance.now() - askedAt;
    },
    appended() {
      return running && new Promise((resolve) => waiting.push(resolve));
    },
    async settled() {
      while (running !== undefined) await running;
    },
  };
}
