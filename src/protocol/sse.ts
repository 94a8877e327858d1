/** The text of Server-Sent Events (WHATWG HTML, section 9.2) as MCP uses them: one JSON text is one event. */

const beforeData = Buffer.from('data: ');
const afterEvent = Buffer.from('\n\n');
const messageType = 'event: message\n'; // the default type, written out because some clients do not know that

/** An event to write: `data` is one line of JSON text, or empty for a priming event. */
export interface SseEvent {
  readonly id: string;
  readonly data: Buffer;
}

/**
 * The text of several events as one buffer, so that a burst is one write. A priming event (empty data) carries `retry`,
 * the reconnection time in milliseconds.
 */
export function encodeEvents(events: readonly SseEvent[], retryMs: number): Buffer {
  const parts: Buffer[] = [];
  for (const { id, data } of events) {
    if (data.length === 0) parts.push(Buffer.from(`id: ${id}\nretry: ${retryMs}\ndata: \n\n`, 'latin1'));
    else parts.push(Buffer.from(`id: ${id}\n${messageType}`, 'latin1'), beforeData, data, afterEvent);
  }
  return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
}

/** The text of one message as an event without an id: it cannot be resumed from. */
export const encodeMessage = (text: Buffer): Buffer =>
  Buffer.concat([Buffer.from(messageType, 'latin1'), beforeData, text, afterEvent]);

/** A comment line: keeps a connection from looking idle; clients ignore it. */
export const keepAliveComment = Buffer.from(': keep-alive\n\n');

/**
 * Tells a reader of a stream that events before the following ones are no longer kept. Its type is unknown to MCP
 * clients, which skip it; people and tools can see it.
 */
export const gapEvent = Buffer.from('event: gap\ndata: {"reason":"history_lost"}\n\n');
