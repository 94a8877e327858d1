import type { LogPosition } from '../protocol/wire/event-id.ts';
import type { EventRun, NewEntry, NewEvent, StoredEntry, StoredEvent } from './event-log.ts';

/** How many events an entry has. */
export const countOf = ({ texts }: NewEntry | StoredEntry): number => (texts === undefined ? 1 : texts.count);

/** How many events the entries have. */
export function eventCount(entries: readonly (NewEntry | StoredEntry)[]): number {
  let count = 0;
  for (const entry of entries) count += countOf(entry);
  return count;
}

/** The bytes of an entry's data, as the limits of a log count them. */
export const bytesOf = ({ texts, data }: NewEntry | StoredEntry): number =>
  texts === undefined ? (data as Buffer).length : texts.bytes;

/** The number of an entry's first event. */
export const firstSeqOf = (entry: NewEntry | StoredEntry): number => entry.seq - countOf(entry) + 1;

/** An event of a run by its index. */
export function eventOfRun(run: EventRun, index: number): StoredEvent {
  const { epoch, stream, texts } = run;
  const seq = firstSeqOf(run) + index;
  return { epoch, stream, seq, previous: positionBefore(run, index), data: texts.text(index), last: false };
}

/** The events of a run from one index to another. */
export function sliceRun(run: EventRun, from: number, to = run.texts.count): EventRun {
  if (from === 0 && to === run.texts.count) return run;
  const seq = firstSeqOf(run) + to - 1;
  return { ...run, seq, previous: positionBefore(run, from), texts: run.texts.slice(from, to) };
}

const positionBefore = (run: EventRun, index: number): LogPosition | undefined =>
  index === 0 ? run.previous : { epoch: run.epoch, seq: firstSeqOf(run) + index - 1 };

/** The events of entries, one by one. */
export function singleEvents(entries: readonly StoredEntry[]): StoredEvent[];
export function singleEvents(entries: readonly NewEntry[]): NewEvent[];
export function singleEvents(entries: readonly (NewEntry | StoredEntry)[]): (NewEvent | StoredEvent)[] {
  return entries.flatMap((entry) =>
    entry.texts === undefined ? [entry] : Array.from({ length: entry.texts.count }, (_, at) => eventOfRun(entry, at)),
  );
}
