import { loadLibrary } from '../../util/load-library.ts';

/** One event of a stream. */
export interface StreamEvent {
  /** The event type; `message` where the server names none. */
  readonly type: string;
  readonly data: string;
  /** The event id, where the server gives one: a broken stream is resumed after it. */
  readonly id?: string;
}

/** Parses bytes as events. The events do not depend on the boundaries of the chunks. */
export interface EventReader {
  /** Returns the events that this chunk completes, in order. */
  push(chunk: Buffer): StreamEvent[];
  /** Approximate number of bytes read since the last event. */
  readonly pendingBytes: number;
  /** False if no event can end in this chunk. */
  mayComplete(chunk: Buffer): boolean;
  /** Why the stream can no longer be read. From then on nothing is held and no further event is returned. */
  readonly overflow: string | undefined;
  /** The server's latest `retry:` value, the pause before the stream is opened again; undefined if it sent none. */
  readonly retryMs: number | undefined;
}

/** Smaller chunks without a line end are collected, so that single bytes do not cost an object each. */
const minFedBytes = 4 * 1024;
const lf = 0x0a;
const cr = 0x0d;

/**
 * An event of more lines is too large, however small they are. Each line is an object until the event is complete, so
 * 400 MB of `data:` lines would hold gigabytes.
 */
const maxLinesPerEvent = 1_000_000;

/** The type that an event with an id alone gets. */
const idOnly = '\0';

/** The length of the longest name of a field that is looked for, with its colon. */
const maxFieldLength = 'data:'.length;

/**
 * Creates a reader of `text/event-stream` (HTML, 9.2.6). It reads UTF-8, drops one byte order mark at the start, and
 * ends lines at LF, CR or both.
 * @param maxEventBytes the most bytes that an event may have. Stops a server that never ends one from filling the
 *   memory
 */
export function createEventReader({ maxEventBytes }: { readonly maxEventBytes: number }): EventReader {
  const decoder = new TextDecoder();
  let held: Buffer | undefined;
  let collectedBytes = 0;
  let pendingBytes = 0;
  let completed: StreamEvent[] = [];
  let overflow: string | undefined;
  let retryMs: number | undefined;
  let endsWithCr = false;
  let lines = 0;
  let isAtLineStart = true;
  /** The first characters of a line that is not complete. */
  let lineHead = '';
  let hasId = false;
  let hasData = false;
  const tooLong = `The server wrote an event of more than ${maxEventBytes} bytes.`;
  const parser = loadLibrary('eventsource-parser').createParser({
    maxBufferSize: maxEventBytes,
    onEvent({ event = 'message', data, id }) {
      if (overflow !== undefined) return;
      if (event === idOnly && data === '') {
        if (id !== undefined) completed.push({ type: 'message', data: '', id });
        return;
      }
      // A character has at most three bytes in UTF-8, so most texts need not be counted.
      const isTooLong = data.length * 3 > maxEventBytes && Buffer.byteLength(data) > maxEventBytes;
      if (isTooLong) overflow = tooLong;
      else completed.push({ type: event, data, ...(id !== undefined && { id }) });
    },
    onRetry(ms) {
      retryMs = ms;
    },
    onError({ type }) {
      // other errors are unknown fields, which are ignored
      if (type === 'max-buffer-size-exceeded') overflow ??= tooLong;
    },
  });

  /**
   * Converts every line end to LF: after a CR the parser would wait for the next character, and so would the response.
   */
  const convertToLf = (text: string): string => {
    const rest = endsWithCr && text.startsWith('\n') ? text.slice(1) : text;
    if (text !== '') endsWithCr = text.endsWith('\r');
    return rest.includes('\r') ? rest.replace(/\r\n?/g, '\n') : rest;
  };

  const noteField = (line: string): void => {
    if (line.startsWith('id:') || line === 'id') hasId = true;
    else if (line.startsWith('data:') || line === 'data') hasData = true;
  };

  /**
   * Counts the lines of events. Gives an event with an id alone a type and an empty data line: the parser drops such an
   * event, but a stream is resumed after its id (HTML, 9.2.6).
   */
  const readLines = (text: string): string => {
    let from = 0;
    let copied = 0;
    let completed = '';
    for (let end = text.indexOf('\n'); end !== -1 && overflow === undefined; end = text.indexOf('\n', from)) {
      const isEmpty = end === from && (from > 0 || isAtLineStart);
      if (!isEmpty) noteField(lineHead + text.slice(from, Math.min(end, from + maxFieldLength)));
      else if (hasId && !hasData) {
        completed += `${text.slice(copied, from)}event:${idOnly}\ndata:\n`;
        copied = from;
      }
      if (isEmpty) {
        hasId = false;
        hasData = false;
      }
      lines = isEmpty ? 0 : lines + 1; // an empty line ends the event
      if (lines > maxLinesPerEvent) overflow = `The server wrote an event of more than ${maxLinesPerEvent} lines.`;
      lineHead = '';
      from = end + 1;
    }
    if (text !== '') isAtLineStart = text.endsWith('\n');
    if (lineHead.length < maxFieldLength) lineHead += text.slice(from, from + maxFieldLength - lineHead.length);
    return completed === '' ? text : completed + text.slice(copied);
  };

  const feed = (bytes: Buffer): void => {
    const text = readLines(convertToLf(decoder.decode(bytes, { stream: true })));
    if (text !== '' && overflow === undefined) parser.feed(text);
  };

  const mayComplete = (chunk: Buffer): boolean => chunk.includes(lf) || chunk.includes(cr);

  return {
    push(chunk) {
      if (overflow !== undefined) return [];
      const isWhole = mayComplete(chunk);
      if (isWhole || collectedBytes + chunk.length > minFedBytes) {
        if (held !== undefined && collectedBytes > 0) feed(held.subarray(0, collectedBytes));
        collectedBytes = 0;
      }
      if (isWhole || chunk.length > minFedBytes) feed(chunk);
      else {
        held ??= Buffer.allocUnsafe(minFedBytes);
        collectedBytes += chunk.copy(held, collectedBytes);
      }
      const events = completed;
      completed = [];
      pendingBytes = events.length > 0 ? 0 : pendingBytes + chunk.length;
      return events;
    },
    get pendingBytes() {
      return pendingBytes;
    },
    mayComplete,
    get overflow() {
      return overflow;
    },
    get retryMs() {
      return retryMs;
    },
  };
}
