import { portionsOf, readTextsApart, type ServerMessages } from '../../../core/protocol/message/server-texts.ts';
import { flattenLineBreaks } from '../../../core/protocol/wire/lines.ts';
import { inOwnTurns, shareOfTurn } from '../../../core/util/timing/work-meter.ts';
import type { EventReader, StreamEvent } from './event-reader.ts';

/** One event of a stream, and the messages in its data: several lines of `data:` are one text. */
export interface MessageEvent extends StreamEvent, ServerMessages {}

/**
 * Reads one chunk of a stream and hands over the events that it completes. What does not fit into this turn of the
 * event loop is read in turns of its own, in portions (P8).
 * @param onEvents may be called several times, for one portion of the events each
 * @returns undefined if all events are handed over already. Nothing else may be read of the stream before the promise
 *   settles
 */
export function readEvents(
  reader: EventReader,
  chunk: Buffer,
  onEvents: (events: readonly MessageEvent[]) => void,
): Promise<void> | undefined {
  const isLarge = reader.pendingBytes + chunk.length >= shareOfTurn && reader.mayComplete(chunk);
  if (isLarge) return readLargeEvents(reader, chunk, onEvents);
  const portions = portionsIn(reader, reader.push(chunk));
  const [first = []] = portions;
  const read = portions.length === 1 ? readEach(first) : undefined;
  if (read === undefined || read instanceof Promise) return readPortions(portions, onEvents);
  onEvents(read);
  return undefined;
}

async function readLargeEvents(reader: EventReader, chunk: Buffer, onEvents: EventSink): Promise<void> {
  let events: readonly StreamEvent[] = [];
  await inOwnTurns(() => {
    events = reader.push(chunk);
    return true;
  });
  await readPortions(portionsIn(reader, events), onEvents);
}
type EventSink = (events: readonly MessageEvent[]) => void;

/** An event, and its data as the text of a message. */
interface TextEvent {
  readonly event: StreamEvent;
  readonly text: Buffer;
}

/** The events in portions that each fit into a turn. After the last event of a stream that is too long, in one. */
function portionsIn({ overflow }: EventReader, events: readonly StreamEvent[]): readonly (readonly TextEvent[])[] {
  const read = events.map((event) => ({ event, text: textIn(event) }));
  return overflow === undefined ? portionsOf(read, ({ text }) => text) : [read];
}

async function readPortions(portions: readonly (readonly TextEvent[])[], onEvents: EventSink): Promise<void> {
  for (const portion of portions) onEvents(await readEach(portion));
}

/** Reads the messages of each event. */
function readEach(events: readonly TextEvent[]): readonly MessageEvent[] | Promise<readonly MessageEvent[]> {
  const texts = events.flatMap(({ text }) => (text.length === 0 ? [] : [text]));
  const read = readTextsApart(texts);
  return read instanceof Promise ? read.then((found) => withMessages(events, found)) : withMessages(events, read);
}

function withMessages(events: readonly TextEvent[], found: readonly ServerMessages[]): readonly MessageEvent[] {
  let next = 0;
  return events.map(({ event, text }) =>
    asMessageEvent(event, text.length === 0 ? noMessages : (found[next++] as ServerMessages)),
  );
}

const noBytes = Buffer.alloc(0);
const noMessages: ServerMessages = { messages: [], noise: [] };

const asMessageEvent = (event: StreamEvent, { messages, noise }: ServerMessages): MessageEvent => ({
  ...event,
  messages,
  noise,
});

/** An event without data only carries the id to resume from. */
const textIn = ({ type, data }: StreamEvent): Buffer => (type === 'message' ? flattenLineBreaks(data) : noBytes);
