import type { LogPosition } from '../protocol/wire/event-id.ts';
import type { EventLog, ReadOutcome, StoredEvent } from './event-log.ts';

/** How many events one read of the log returns: enough for throughput, few enough to stay small in memory. */
export const eventsPerRead = 256;

/** How many bytes a page has at most, if it has several events: one write to a client. */
const bytesPerPage = 256 * 1024;

/** Events of a stream of the log. */
export type LogPage = Extract<ReadOutcome, { outcome: 'ok' }>;

/**
 * Reads a stream of a log page by page, until a page reaches the stream's newest event. A read that finds no stream is
 * the last page. The next read waits until the caller asks for it. A caller that has to wait for its client should stop,
 * and read again from its position later, so that no page stays in memory (P8).
 * @param after the position before the first page; undefined for the oldest event
 * @param first the outcome of a read after that position, if the caller has one already
 */
export async function* readPages(
  log: Pick<EventLog, 'read'>,
  key: string,
  stream: number,
  after: LogPosition | undefined,
  first?: ReadOutcome,
): AsyncGenerator<ReadOutcome, void> {
  let read = first ?? (await log.read(key, stream, after, eventsPerRead));
  let position = after;
  for (;;) {
    if (read.outcome !== 'ok') return yield read;
    yield* splitPage(read);
    if (read.atTail || read.events.length === 0) return;
    position = read.events.at(-1) ?? position;
    read = await log.read(key, stream, position, eventsPerRead);
  }
}

function* splitPage(read: LogPage): Generator<LogPage, void> {
  const { events, broken, atTail } = read;
  let from = 0;
  do {
    const to = endOfPage(events, from);
    const isWhole = from === 0 && to === events.length;
    if (isWhole) yield read;
    else
      yield {
        ...read,
        events: events.slice(from, to),
        broken: broken && from === 0,
        atTail: atTail && to === events.length,
      };
    from = to;
  } while (from < events.length);
}

/** The end of the page that begins at this index: at least one event, and more up to the limit of bytes. */
function endOfPage(events: readonly StoredEvent[], from: number): number {
  let bytes = 0;
  for (let to = from; to < events.length; to += 1) {
    bytes += (events[to] as StoredEvent).data.length;
    if (bytes > bytesPerPage && to > from) return to;
  }
  return events.length;
}
