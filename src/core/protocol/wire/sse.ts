// src/core/protocol/wire: how messages and events are written as bytes: lines, Server-Sent Events, event ids, close codes.

/** The text of Server-Sent Events (WHATWG HTML, section 9.2) as MCP uses them: one JSON text is one event. */
import { writeDigits } from '../../util/text/digits.ts';
import { type EventId, formatEventId, formatEventIdStart, maxEventIdLength, parseEventId } from './event-id.ts';

const lineFeed = 0x0a;
/**
 * The text between an event's id and its message. The default type is written out, since some clients do not know it.
 */
const messageHead = Buffer.from('\nevent: message\ndata: ');

/** The data of a priming event, which only gives a client a position to resume from. */
export const noData = Buffer.alloc(0);

/** An event of a log: `data` is one line of JSON text, or empty for a priming event. */
export interface LoggedEvent extends Omit<EventId, 'requests'> {
  readonly data: Buffer;
  /** The stream ends with this event. A client with its id has all responses, so the id names no request. */
  readonly last?: boolean;
}

/**
 * Encodes several events of a log as one buffer, so that a burst is one write. A priming event (empty data) carries
 * `retry`, the reconnection time in milliseconds.
 * @param requests the end of each event id; see `EventId.requests`
 */
export function encodeLoggedEvents(events: readonly LoggedEvent[], retryMs: number, requests = ''): Buffer {
  const head = formatHead(requests);
  const primingHead = `${requests}\nretry: ${retryMs}\ndata: `;
  let size = 0;
  for (const { data } of events) size += maxEventIdLength + primingHead.length + head.length + data.length;
  const text = Buffer.allocUnsafe(size);
  let at = 0;
  let previous: LoggedEvent | undefined;
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

/** An event of a stream, by its purpose. */
export type SseEvent =
  /** A message of MCP. A client cannot resume from one without an id. */
  | { readonly kind: 'message'; readonly id?: EventId; readonly data: Buffer }
  /** Gives a client a position to resume from, and its reconnection time in milliseconds. */
  | { readonly kind: 'priming'; readonly id: EventId; readonly retryMs: number }
  /** The reconnection time alone (WHATWG HTML, section 9.2.6). */
  | { readonly kind: 'retry'; readonly retryMs: number }
  /**
   * Tells a reader of a stream that earlier events are no longer kept. MCP clients do not know its type and skip it;
   * people and tools can see it.
   */
  | { readonly kind: 'gap' };

const gapData = Buffer.from('{"reason":"history_lost"}');

/** The fields of an event as they are written. */
interface EventFields {
  id?: string;
  retryMs?: number;
  type?: string;
  data?: Buffer;
}

/**
 * Encodes one event.
 * @param formatId writes event ids of another form than `formatEventId`
 */
export function encodeEvent(event: SseEvent, formatId: (id: EventId) => string = formatOwnId): Buffer {
  switch (event.kind) {
    case 'message':
      return encodeFields({ ...(event.id && { id: formatId(event.id) }), type: 'message', data: event.data });
    case 'priming':
      return encodeFields({ id: formatId(event.id), retryMs: event.retryMs, data: noData });
    case 'retry':
      return encodeFields({ retryMs: event.retryMs });
    case 'gap':
      return encodeFields({ type: 'gap', data: gapData });
  }
}

const formatOwnId = (id: EventId): string => formatEventId(id.stream, id);

/** Encodes the first event of HTTP+SSE (2024-11-05), which names the path for POSTs. */
export const encodeEndpointEvent = (retryMs: number, path: string): Buffer =>
  encodeFields({ retryMs, type: 'endpoint', data: Buffer.from(path) });

function encodeFields({ id, retryMs, type, data }: EventFields): Buffer {
  const head = [
    id === undefined ? '' : `id: ${id}\n`,
    retryMs === undefined ? '' : `retry: ${retryMs}\n`,
    type === undefined ? '' : `event: ${type}\n`,
  ].join('');
  if (data === undefined) return Buffer.from(`${head}\n`);
  return Buffer.concat([Buffer.from(`${head}data: `), data, Buffer.from('\n\n')]);
}

/**
 * Decodes a text that `encodeLoggedEvents` or `encodeEvent` wrote, as their exact inverse. It throws for any other text,
 * which would be a fault of the gateway. The data are slices of `text`, not copies.
 */
export function decodeEvents(text: Buffer): SseEvent[] {
  const events: SseEvent[] = [];
  let fields: EventFields = {};
  let at = 0;
  while (at < text.length) {
    const end = text.indexOf(lineFeed, at);
    if (end < 0) break;
    if (end === at) {
      events.push(eventOf(fields));
      fields = {};
    } else readField(fields, text.subarray(at, end));
    at = end + 1;
  }
  if (at < text.length || Object.keys(fields).length > 0) throw notEvents();
  return events;
}

const notEvents = (): Error => new Error('the text is not a sequence of events');

function eventOf({ id: idText, retryMs, type, data }: EventFields): SseEvent {
  const id = idText === undefined ? undefined : parseEventId(idText);
  if ((id === undefined) !== (idText === undefined)) throw notEvents();
  if (type === 'message' && data !== undefined) return { kind: 'message', ...(id && { id }), data };
  if (type === 'gap') return { kind: 'gap' };
  if (type !== undefined || retryMs === undefined) throw notEvents();
  return id === undefined ? { kind: 'retry', retryMs } : { kind: 'priming', id, retryMs };
}

/** Reads one line; throws for a line that this file does not write. */
function readField(fields: EventFields, line: Buffer): void {
  const colon = line.indexOf(': ');
  const value = line.subarray(colon + 2);
  switch (line.toString('latin1', 0, Math.max(0, colon))) {
    case 'data':
      fields.data = value;
      break;
    case 'id':
      fields.id = value.toString('latin1');
      break;
    case 'event':
      fields.type = value.toString('latin1');
      break;
    case 'retry':
      fields.retryMs = Number(value.toString('latin1'));
      break;
    default:
      throw notEvents();
  }
}

/**
 * A comment line that keeps a connection from looking idle; clients ignore it. No empty line follows it: some readers
 * take one for the end of an event as soon as they have seen an id.
 */
export const keepAliveComment = Buffer.from(': keep-alive\n');
