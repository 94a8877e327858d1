import { TextRun } from '../../src/protocol/wire/text-run.ts';
import type { EventRun, NewEntry, NewEvent, StoredEvent } from '../../src/store/event-log.ts';
import { firstSeqOf } from '../../src/store/event-run.ts';

/** Texts as one run, in memory that looks like a chunk with other lines around them. */
export function runOf(texts: readonly (string | Buffer)[], around = ''): TextRun {
  const buffers = texts.map((text) => Buffer.from(text));
  const ends: number[] = [];
  for (const { length } of buffers) ends.push((ends.at(-1) ?? -1) + 1 + length);
  const lines = Buffer.concat(buffers.flatMap((text) => [text, Buffer.from('\n')]));
  const chunk = Buffer.concat([Buffer.from(around), lines, Buffer.from(around)]);
  const start = Buffer.byteLength(around);
  return new TextRun(chunk.subarray(start, start + lines.length - 1), Uint32Array.from(ends));
}

/** The same events, where consecutive ones of a stream are runs: as long as the lengths say, which repeat. */
export function joinRuns(epoch: number, events: readonly NewEvent[], lengths: readonly number[]): NewEntry[] {
  const entries: NewEntry[] = [];
  let turn = 0;
  for (let from = 0; from < events.length; ) {
    const first = events[from] as NewEvent;
    const longest = lengths.length === 0 ? 1 : (lengths[turn % lengths.length] as number);
    turn += 1;
    let to = from;
    while (to < events.length && to - from < longest && isPart(events[to] as NewEvent, first)) to += 1;
    const part = events.slice(from, Math.max(to, from + 1));
    from += part.length;
    if (part.length < 2) entries.push(first);
    else entries.push(asRun(epoch, part));
  }
  return entries;
}

const isPart = ({ stream, last, opens, settles, data }: NewEvent, first: NewEvent): boolean =>
  stream === first.stream && !last && opens === undefined && settles === undefined && data.length > 0;

function asRun(epoch: number, events: readonly NewEvent[]): EventRun {
  const { stream, previous } = events[0] as NewEvent;
  const { seq } = events.at(-1) as NewEvent;
  const texts = runOf(
    events.map(({ data }) => data),
    'x'.repeat(seq % 3 === 0 ? 200 : 0),
  );
  return { epoch, stream, seq, previous, texts, last: false };
}

/** The events of entries, one by one. */
export function splitRuns<T extends NewEvent | StoredEvent>(entries: readonly (T | EventRun)[]): NewEvent[] {
  return entries.flatMap((entry): NewEvent[] => {
    if (entry.texts === undefined) return [entry];
    const { epoch, stream, previous, last } = entry;
    const first = firstSeqOf(entry);
    return entry.texts.texts().map((data, index) => {
      const before = index === 0 ? previous : { epoch, seq: first + index - 1 };
      return { epoch, stream, seq: first + index, previous: before, data, last };
    });
  });
}
