// src/protocol/wire: how messages and events are written as bytes: lines, Server-Sent Events, event ids, close codes.

/** The text of Server-Sent Events (WHATWG HTML, section 9.2) as MCP uses them: one JSON text is one event. */
import { writeDigits } from '../../util/digits.ts';
import { type EventId, finalSeq, formatEventIdStart, maxEventIdLength } from './event-id.ts';

const lineFeed = 0x0a;
/**
 * The text between an event's id and its message. The default type is written out, since some clients do not know it.
 */
const messageHead = Buffer.from('\nevent: message\ndata: ');

/** The data of a priming event, which only gives a client a position to resume from. */
export const noData = Buffer.alloc(0);

/** An event to write: `data` is one line of JSON text, or empty for a priming event. */
export interface SseEvent extends Omit<EventId, 'requests'> {
  readonly data: Buffer;
  /** The stream ends with this event. A client with its id has all responses, so the id names no request. */
  readonly last?: boolean;
}

/**
 * Encodes several events as one buffer, so that a burst is one write. A priming event (empty data) carries `retry`, the
 * reconnection time in milliseconds.
 * @param requests the end of each event id; see `EventId.requests`
 */
export function encodeEvents(events: readonly SseEvent[], retryMs: number, requests = ''): Buffer {
  const head = formatHead(requests);
  const primingHead = `${requests}\nretry: ${retryMs}\ndata: `;
  let size = 0;
  for (const { data } of events) size += maxEventIdLength + primingHead.length + head.length + data.length;
  const text = Buffer.allocUnsafe(size);
  let at = 0;
  let previous: SseEvent | undefined;
  let idStart = 0; // position of the latest id; the next one may share its beginning
  let sharedLength = 0;
  for (const event of events) {
    const { stream, epoch, seq, data, last } = event;
    if (previous?.stream === stream && previous.epoch === epoch) {
      text.copyWithin(at, idStart, idStart + sharedLength);
      idStart = at;
    } else {
      idStart = at;
      sharedLength = text.write(`id: ${formatEventIdStart(stream, epoch)}`, at, 'latin1');
    }
    previous = event;
    at = writeDigits(text, at + sharedLength, seq);
    if (data.length === 0) at += text.write(primingHead, at, 'latin1');
    else {
      const eventHead = last === true ? messageHead : head;
      text.set(eventHead, at);
      at += eventHead.length;
      text.set(data, at);
      at += data.length;
    }
    text[at++] = lineFeed;
    text[at++] = lineFeed;
  }
  return text.subarray(0, at);
}

let lastRequests = '';
let lastHead = messageHead;

/**
 * The text between the number of an event and its message. A burst belongs to one stream, so caching the latest is
 * enough.
 */
function formatHead(requests: string): Buffer {
  if (requests !== lastRequests) {
    lastRequests = requests;
    lastHead = Buffer.concat([Buffer.from(requests), messageHead]);
  }
  return lastHead;
}

/** An event with all fields that were written for it. */
export interface DecodedEvent {
  readonly id?: string;
  /** The reconnection time in milliseconds. */
  readonly retryMs?: number;
  /** `message` for the messages of MCP. */
  readonly type?: string;
  /** One line; empty for a priming event. */
  readonly data?: Buffer;
}

/** Encodes one event of any kind. */
export function encodeEvent({ id, retryMs, type, data }: DecodedEvent): Buffer {
  const head = [
    id === undefined ? '' : `id: ${id}\n`,
    retryMs === undefined ? '' : `retry: ${retryMs}\n`,
    type === undefined ? '' : `event: ${type}\n`,
  ].join('');
  if (data === undefined) return Buffer.from(`${head}\n`);
  return Buffer.concat([Buffer.from(`${head}data: `), data, Buffer.from('\n\n')]);
}

/**
 * Decodes a text that the functions of this file wrote, for transports that carry events in another form. It is the
 * exact inverse of `encodeEvents` and `encodeEvent`. It throws for any other text, which would be a fault of the
 * gateway. The data are slices of `text`, not copies.
 */
export function decodeEvents(text: Buffer): DecodedEvent[] {
  const events: DecodedEvent[] = [];
  let event: { -readonly [K in keyof DecodedEvent]: DecodedEvent[K] } = {};
  let at = 0;
  while (at < text.length) {
    const end = text.indexOf(lineFeed, at);
    if (end < 0) break;
    if (end === at) {
      events.push(event);
      event = {};
    } else if (!readField(event, text.subarray(at, end))) break;
    at = end + 1;
  }
  if (at < text.length || Object.keys(event).length > 0) throw new Error('the text is not a sequence of events');
  return events;
}

/** Reads one line; false for a line that this file does not write. */
function readField(event: { -readonly [K in keyof DecodedEvent]: DecodedEvent[K] }, line: Buffer): boolean {
  const colon = line.indexOf(': ');
  const value = line.subarray(colon + 2);
  switch (line.toString('latin1', 0, Math.max(0, colon))) {
    case 'data':
      event.data = value;
      return true;
    case 'id':
      event.id = value.toString('latin1');
      return true;
    case 'event':
      event.type = value.toString('latin1');
      return true;
    case 'retry':
      event.retryMs = Number(value.toString('latin1'));
      return true;
    default:
      return false;
  }
}

/** Encodes one message as an event without an id: it cannot be resumed from. */
export const encodeMessage = (text: Buffer): Buffer => encodeEvent({ type: 'message', data: text });

/**
 * Encodes the final events of a stream that the gateway cannot continue, one for each of its requests. The last one has
 * an id, from which a client resumes to learn that nothing follows.
 */
export function encodeFinalEvents(
  texts: readonly string[],
  { stream, epoch }: Pick<EventId, 'stream' | 'epoch'>,
): Buffer {
  const id = `${formatEventIdStart(stream, epoch)}${finalSeq}`;
  return Buffer.concat(
    texts.map((text, index) =>
      encodeEvent({ ...(index === texts.length - 1 && { id }), type: 'message', data: Buffer.from(text) }),
    ),
  );
}

/**
 * A comment line that keeps a connection from looking idle; clients ignore it. No empty line follows it: some readers
 * take one for the end of an event as soon as they have seen an id.
 */
export const keepAliveComment = Buffer.from(': keep-alive\n');

/**
 * Tells a reader of a stream that earlier events are no longer kept. MCP clients do not know its type and skip it;
 * people and tools can see it.
 */
export const gapEvent = encodeEvent({ type: 'gap', data: Buffer.from('{"reason":"history_lost"}') });

/** The reconnection time alone, without an event (WHATWG HTML, section 9.2.6). */
export const encodeRetry = (ms: number): Buffer => encodeEvent({ retryMs: Math.ceil(ms) });
