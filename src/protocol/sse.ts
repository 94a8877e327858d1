/** The text of Server-Sent Events (WHATWG HTML, section 9.2) as MCP uses them: one JSON text is one event. */

const lineFeed = 0x0a;
const messageHead = 'event: message\ndata: '; // the default type, written out because some clients do not know that

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
  const heads = events.map(({ id, data }) =>
    data.length === 0 ? `id: ${id}\nretry: ${retryMs}\ndata: ` : `id: ${id}\n${messageHead}`,
  );
  let size = 0;
  events.forEach(({ data }, i) => {
    size += (heads[i] as string).length + data.length + 2;
  });
  const text = Buffer.allocUnsafe(size);
  let at = 0;
  events.forEach(({ data }, i) => {
    at += text.write(heads[i] as string, at, 'latin1');
    at += data.copy(text, at);
    text[at++] = lineFeed;
    text[at++] = lineFeed;
  });
  return text;
}

/** The text of one message as an event without an id: it cannot be resumed from. */
export const encodeMessage = (text: Buffer): Buffer =>
  Buffer.concat([Buffer.from(messageHead), text, Buffer.from('\n\n')]);

/** A comment line: keeps a connection from looking idle; clients ignore it. */
export const keepAliveComment = Buffer.from(': keep-alive\n\n');

/**
 * Tells a reader of a stream that events before the following ones are no longer kept. Its type is unknown to MCP
 * clients, which skip it; people and tools can see it.
 */
export const gapEvent = Buffer.from('event: gap\ndata: {"reason":"history_lost"}\n\n');

/** The reconnection time alone, without an event (WHATWG HTML, section 9.2.6). */
export const encodeRetry = (ms: number): Buffer => Buffer.from(`retry: ${Math.ceil(ms)}\n\n`);
