import { readServerTexts, readSmallTexts, type ServerMessages } from '../../protocol/message/message.ts';
import { inOwnTurns, isLarge } from '../../util/large-reads.ts';
import type { EventReader, StreamEvent } from './event-reader.ts';

/** One event of a stream, and the messages in its data: several lines of `data:` are one text. */
export interface MessageEvent extends StreamEvent, ServerMessages {}

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
    onEvents(reader.push(chunk).map((event) => asMessageEvent(event, readSmallTexts(textsIn(event)))));
    return undefined;
  }
  return readLargeEvents(reader, chunk).then(onEvents);
}

async function readLargeEvents(reader: EventReader, chunk: Buffer): Promise<readonly MessageEvent[]> {
  let events: readonly (readonly [StreamEvent, readonly Buffer[]])[] = [];
  await inOwnTurns(() => {
    events = reader.push(chunk).map((event) => [event, textsIn(event)]);
    return true;
  });
  const read: MessageEvent[] = [];
  for (const [event, texts] of events) read.push(asMessageEvent(event, await readServerTexts(texts)));
  return read;
}

const asMessageEvent = (event: StreamEvent, { messages, noise }: ServerMessages): MessageEvent => ({
  ...event,
  messages,
  noise,
});

/** An event without data only carries the id to resume from. */
const textsIn = ({ type, data }: StreamEvent): readonly Buffer[] =>
  type === 'message' && data !== '' ? [Buffer.from(asOneLine(data))] : [];

/** Most data have one line, and are not copied for the others. */
const asOneLine = (data: string): string => (data.includes('\n') ? data.replaceAll('\n', ' ') : data);
