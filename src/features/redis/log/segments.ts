import type { LogLimits, NewEvent, StoredEvent } from '../../../core/store/event-log.ts';
import { writeDigits } from '../../../core/util/text/digits.ts';
import { formatLogPosition, parseLogPosition, textOf } from '../codec.ts';
import type { ScriptReply } from '../script.ts';

/**
 * Consecutive events in one entry of the log. The log evicts whole segments, so a segment is a small part of the
 * limits. A segment has few events, so a reader of one stream gets few events of other streams.
 */
export interface Segment {
  /** The number of the segment's last event. */
  readonly lastSeq: number;
  /** `<events> <bytes> <stream>:<events>:<1 if it ends here>…`; the script prepends the time. */
  readonly header: string;
  /**
   * For each event a line `<stream> <1 if last> <bytes> <previous>`, then the event's data. If the event directly
   * follows another one of its stream and does not end the stream, the line is only `<bytes>`.
   */
  readonly data: Buffer;
}

const maxEventsPerSegment = 64;
/** The bound for a line: three numbers and a position of two, each of at most 16 digits. */
const maxLineLength = 96;
const lineFeed = 0x0a;

/** Divides a batch into segments. */
export function toSegments(epoch: number, events: readonly NewEvent[], { maxEvents, maxBytes }: LogLimits): Segment[] {
  const segmentEvents = Math.max(1, Math.min(maxEventsPerSegment, Math.floor(maxEvents / 8)));
  const segmentBytes = maxBytes / 64;
  const segments: Segment[] = [];
  let filled: NewEvent[] = [];
  let bytes = 0;
  const close = (): void => {
    if (filled.length > 0) segments.push(toSegment(epoch, filled, bytes));
    filled = [];
    bytes = 0;
  };
  for (const event of events) {
    if (filled.length >= segmentEvents || bytes + event.data.length > segmentBytes) close();
    filled.push(event);
    bytes += event.data.length;
  }
  close();
  return segments;
}

function toSegment(epoch: number, events: readonly NewEvent[], dataBytes: number): Segment {
  const streams: { readonly stream: number; count: number; ended: boolean }[] = [];
  let current: (typeof streams)[number] | undefined;
  for (const { stream, last } of events) {
    if (current?.stream !== stream) {
      current = streams.find((known) => known.stream === stream);
      if (current === undefined) {
        current = { stream, count: 0, ended: false };
        streams.push(current);
      }
    }
    current.count += 1;
    current.ended = last;
  }
  const all = Buffer.allocUnsafe(dataBytes + events.length * maxLineLength);
  let at = 0;
  let before: NewEvent | undefined;
  for (const event of events) {
    const { stream, last, previous, data } = event;
    const isDirectSuccessor = before?.stream === stream && previous?.seq === before.seq && previous.epoch === epoch;
    if (isDirectSuccessor && !last) at = writeDigits(all, at, data.length);
    else {
      const position = previous === undefined ? '' : formatLogPosition(previous);
      at += all.write(`${stream} ${last ? 1 : 0} ${data.length} ${position}`, at, 'latin1');
    }
    before = event;
    all[at++] = lineFeed;
    all.set(data, at);
    at += data.length;
  }
  const list = streams.map((found) => `${found.stream}:${found.count}:${found.ended ? 1 : 0}`);
  const lastSeq = (events.at(-1) as NewEvent).seq;
  return { lastSeq, header: `${events.length} ${dataBytes} ${list.join(' ')}`, data: all.subarray(0, at) };
}

/** Parses all events of a segment from the id, header (with the time before it) and data of its entry. */
export function fromSegment(entryId: ScriptReply, header: ScriptReply, data: ScriptReply): StoredEvent[] {
  const { epoch, seq: lastSeq } = parseLogPosition(textOf(entryId));
  const count = Number(textOf(header).split(' ', 2)[1]);
  const bytes = data as Buffer;
  const events: StoredEvent[] = [];
  let at = 0;
  for (let seq = lastSeq - count + 1; seq <= lastSeq; seq += 1) {
    const end = bytes.indexOf(lineFeed, at);
    const words = bytes.toString('latin1', at, end).split(' ');
    const [length, stream, last, position] = words.length === 1 ? words : [words[2], words[0], words[1], words[3]];
    at = end + 1 + Number(length);
    events.push({
      epoch,
      seq,
      stream: stream === undefined ? (events.at(-1) as StoredEvent).stream : Number(stream),
      previous: stream === undefined ? { epoch, seq: seq - 1 } : position ? parseLogPosition(position) : undefined,
      data: bytes.subarray(end + 1, at),
      last: last === '1',
    });
  }
  return events;
}
