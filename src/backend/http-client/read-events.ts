import { readLarge } from '../../protocol/message/message.ts';
import { inOwnTurns, isLarge } from '../../util/large-reads.ts';
import type { EventReader, StreamEvent } from './event-reader.ts';

/** One event of a stream, and its data as a message: several lines of `data:` are one text. */
export interface MessageEvent {
  readonly type: string;
  readonly data: string;
  readonly id: string | undefined;
  readonly message: Buffer;
}

/**
 * Reads one chunk of a stream and hands over the events that it completes. Large events are first parsed in several
 * turns of the event loop (P8).
 * @returns undefined if the events are handed over already. Nothing else may be read of the stream before the promise
 *   settles
 */
export function readEvents(
  reader: EventReader,
  chunk: Buffer,
  onEvents: (events: readonly MessageEvent[]) => void,
): Promise<void> | undefined {
  if (!isLarge(reader.pendingBytes + chunk.length) || !reader.mayComplete(chunk)) {
    onEvents(withMessages(reader.push(chunk)));
    return undefined;
  }
  return readLargeEvents(reader, chunk).then(onEvents);
}

async function readLargeEvents(reader: EventReader, chunk: Buffer): Promise<readonly MessageEvent[]> {
  let events: readonly MessageEvent[] = [];
  await inOwnTurns(() => {
    events = withMessages(reader.push(chunk));
    return true;
  });
  await readLarge(events.map(({ message }) => message));
  return events;
}

const withMessages = (events: readonly StreamEvent[]): readonly MessageEvent[] =>
  events.map(({ type, data, id }) => ({ type, data, id, message: Buffer.from(asOneLine(data)) }));

/** Most data have one line, and are not copied for the others. */
const asOneLine = (data: string): string => (data.includes('\n') ? data.replaceAll('\n', ' ') : data);
