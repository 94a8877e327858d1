import { isUtf8 } from 'node:buffer';
import { withoutBoms } from '../../../core/protocol/wire/lines.ts';
import { UnfinishedLine } from '../../../core/protocol/wire/unfinished-line.ts';

/** One event of a stream. */
export interface StreamEvent {
  /** The event type; `message` where the server names none. */
  readonly type: string;
  /** The lines of the data, joined by LF. They may share the memory of a chunk. */
  readonly data: Buffer;
  /** The event id, where the server gives one: a broken stream is resumed after it. */
  readonly id?: string;
}

const lf = 0x0a;
const cr = 0x0d;
const colon = 0x3a;
const space = 0x20;
const noBytes = Buffer.alloc(0);
const lineFeed = Buffer.of(lf);

/** The text in front of data. It does not count for the limit of an event. */
const dataField = 'data: ';

/** The names of the fields that have a meaning (HTML, 9.2.6). A line with another name is ignored. */
const fields: ReadonlySet<string> = new Set(['data', 'event', 'id', 'retry']);
const maxFieldLength = 5;

/**
 * Reads `text/event-stream` (HTML, 9.2.6) by bytes. It drops byte order marks before lines, and ends lines at LF, CR
 * or both. The events do not depend on the boundaries of the chunks. Each byte is looked at once, and no text is built
 * of the data: an event of any size costs one copy when it is complete (P8).
 */
export class EventReader {
  readonly #maxEventBytes: number;
  readonly #line: UnfinishedLine;
  /** The lines of the data before the last one. */
  readonly #earlierData: UnfinishedLine;
  /** The last line of the data of the current event. */
  #data: Buffer | undefined;
  #type: string | undefined;
  #id: string | undefined;
  #endsWithCr = false;
  #pendingBytes = 0;
  #overflow: string | undefined;
  #retryMs: number | undefined;

  /**
   * @param maxEventBytes the most bytes that an event may have. Stops a server that never ends one from filling the
   *   memory
   */
  constructor({ maxEventBytes }: { readonly maxEventBytes: number }) {
    this.#maxEventBytes = maxEventBytes;
    this.#line = new UnfinishedLine(maxEventBytes + dataField.length);
    this.#earlierData = new UnfinishedLine(maxEventBytes);
  }

  /** Approximate number of bytes read since the last event. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Why the stream can no longer be read. From then on nothing is held and no further event is returned. */
  get overflow(): string | undefined {
    return this.#overflow;
  }

  /** The server's latest `retry:` value, the pause before the stream is opened again; undefined if it sent none. */
  get retryMs(): number | undefined {
    return this.#retryMs;
  }

  /** False if no event can end in this chunk. */
  mayComplete(chunk: Buffer): boolean {
    return chunk.includes(lf) || chunk.includes(cr);
  }

  /** Returns the events that this chunk completes, in order. The reader takes over the chunk (`joinChunks`). */
  push(chunk: Buffer): StreamEvent[] {
    const events: StreamEvent[] = [];
    let from = this.#endsWithCr && chunk[0] === lf ? 1 : 0;
    if (chunk.length > 0) this.#endsWithCr = chunk[chunk.length - 1] === cr;
    let nextLf = from - 1;
    let nextCr = from - 1;
    while (from < chunk.length && this.#overflow === undefined) {
      if (nextLf < from) nextLf = indexOrEnd(chunk, lf, from);
      if (nextCr < from) nextCr = indexOrEnd(chunk, cr, from);
      const end = Math.min(nextLf, nextCr);
      const part = chunk.subarray(from, end);
      if (this.#line.bytes + part.length > this.#maxEventBytes + dataField.length) this.#refuse();
      else if (end === chunk.length) this.#line.append(part);
      else {
        const event = this.#readLine(this.#line.bytes > 0 ? this.#line.complete(part) : part);
        if (event !== undefined) events.push(event);
      }
      from = end + (chunk[end] === cr && chunk[end + 1] === lf ? 2 : 1);
    }
    this.#pendingBytes = events.length > 0 ? 0 : this.#pendingBytes + chunk.length;
    return events;
  }

  /** Reads a line. Returns the event that it completes. */
  #readLine(raw: Buffer): StreamEvent | undefined {
    const line = withoutBoms(raw); // a writer that is opened for each event begins each one with it
    if (line.length === 0) return this.#complete();
    const nameEnd = line.indexOf(colon);
    const nameLength = nameEnd < 0 ? line.length : nameEnd;
    if (nameLength > maxFieldLength) return undefined;
    const name = line.toString('latin1', 0, nameLength);
    if (!fields.has(name)) return undefined;
    const valueStart = nameLength + (line[nameLength + 1] === space ? 2 : 1);
    this.#readField(name, nameEnd < 0 ? noBytes : line.subarray(valueStart));
    return undefined;
  }

  #readField(name: string, value: Buffer): void {
    if (name === 'data') this.#addData(value);
    else if (name === 'event') this.#type = value.toString('utf8', 0, maxFieldBytes);
    else if (value.length > maxFieldBytes) return;
    else if (name === 'id') {
      if (!value.includes(0)) this.#id = value.toString();
    } else if (/^\d+$/.test(value.toString('latin1'))) this.#retryMs = Number(value.toString('latin1'));
  }

  #addData(value: Buffer): void {
    const earlier = this.#earlierData;
    if (this.#data !== undefined) {
      earlier.append(this.#data);
      earlier.append(lineFeed);
    }
    this.#data = value;
    if (earlier.bytes + value.length > this.#maxEventBytes) this.#refuse();
  }

  #complete(): StreamEvent | undefined {
    const data = this.#data;
    const id = this.#id;
    const type = this.#type || 'message';
    this.#data = undefined;
    this.#type = undefined;
    this.#id = undefined;
    // The parser of a browser drops an event without data. But a stream is resumed after its id.
    if (data === undefined) return id === undefined ? undefined : { type: 'message', data: noBytes, id };
    const bytes = this.#earlierData.bytes > 0 ? this.#earlierData.complete(data) : data;
    const text = isUtf8(bytes) ? bytes : Buffer.from(bytes.toString()); // U+FFFD has more bytes than what it replaces
    if (text.length <= this.#maxEventBytes) return { type, data: text, ...(id !== undefined && { id }) };
    this.#refuse();
    return undefined;
  }

  #refuse(): void {
    this.#overflow = `The server wrote an event of more than ${this.#maxEventBytes} bytes.`;
    this.#line.take();
    this.#earlierData.take();
    this.#data = undefined;
  }
}

/** A longer id is not kept, and a longer type is cut (P8): a request could not name such an id. */
const maxFieldBytes = 8 * 1024;

function indexOrEnd(chunk: Buffer, byte: number, from: number): number {
  const index = chunk.indexOf(byte, from);
  return index < 0 ? chunk.length : index;
}
