import type { Position } from '../protocol/event-id.ts';
import type { AppendOutcome, EventLog, StoredEvent } from '../store/store.ts';

/** What a writer needs: the log, the session in it, the epoch that it writes under, and whom to tell. */
export interface EventWriterOptions {
  readonly log: EventLog;
  readonly key: string;
  readonly epoch: number;
  /** Events are in the log and may be sent now (P5). In order; one call for each append. */
  onStored(events: readonly StoredEvent[]): void;
  /** The log did not take the events: this instance may no longer write to the session. */
  onRefused(outcome: Exclude<AppendOutcome, 'stored' | 'already'> | 'failed', cause?: unknown): void;
}

/**
 * Numbers the events of one session and appends them, in order, one append at a time: what is added while one is under
 * way goes into the next, so that a slow log sees few large appends and not many small ones.
 */
export interface EventWriter {
  /** Queues an event of a stream; `last` if the stream ends with it. */
  add(stream: number, data: Buffer, last: boolean): void;
  /** Starts to append what was added. Call it once at the end of a burst. */
  flush(): void;
  /** What was added and is not known to be stored. */
  readonly pending: { readonly events: number; readonly bytes: number };
  /** Resolves when nothing is queued or under way any more. */
  settled(): Promise<void>;
}

/** An event writer for a session without events so far. */
export function createEventWriter({ log, key, epoch, onStored, onRefused }: EventWriterOptions): EventWriter {
  const tails = new Map<number, Position>();
  let queue: StoredEvent[] = [];
  let seq = 0;
  let appended = 0;
  let pendingBytes = 0;
  let running: Promise<void> | undefined;
  let isRefused = false;

  const appendAll = async (): Promise<void> => {
    while (queue.length > 0) {
      const batch = queue;
      queue = [];
      const outcome = await log.append(key, epoch, appended, batch);
      if (outcome !== 'stored' && outcome !== 'already') {
        isRefused = true;
        return onRefused(outcome);
      }
      appended += batch.length;
      for (const { data } of batch) pendingBytes -= data.length;
      onStored(batch);
    }
  };

  const start = (): void => {
    if (running !== undefined || queue.length === 0 || isRefused) return;
    running = appendAll()
      .catch((cause: unknown) => {
        isRefused = true;
        onRefused('failed', cause);
      })
      .finally(() => {
        running = undefined;
        start(); // what was added after the last look at the queue
      });
  };

  return {
    add(stream, data, last) {
      seq += 1;
      pendingBytes += data.length;
      queue.push({ epoch, stream, seq, previous: tails.get(stream), data, last });
      if (last) tails.delete(stream);
      else tails.set(stream, { epoch, seq });
    },
    flush: start,
    get pending() {
      return { events: seq - appended, bytes: pendingBytes };
    },
    async settled() {
      while (running !== undefined) await running;
    },
  };
}
