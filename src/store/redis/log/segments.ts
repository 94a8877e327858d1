import { compareLogPositions, type LogPosition } from '../../../protocol/wire/event-id.ts';
import { writeDigits } from '../../../util/digits.ts';
import type { LogLimits, NewEvent, StoredEvent } from '../../event-log.ts';
import { formatLogPosition, parseLogPosition, textOf } from '../codec.ts';
import type { ScriptReply } from '../script.ts';

/**
 * Consecutive events that lie together in one entry of the log. A log is evicted by whole segments, so one is a small part of
 * the limits; so that a reader of one stream is not given much of others', it has not many events.
 */
export interface Segment {
  /** The number of its last event. */
  readonly lastSeq: number;
  /** `<events> <bytes> <stream>:<events>:<1 if it ends here>…`; the script puts the time before it. */
  readonly header: string;
  /**
   * For each event a line `<stream> <1 if last> <bytes> <previous>`, and its data. The line is `<bytes>` alone for one that
   * follows another of its stream directly and does not end it.
   */
  readonly data: Buffer;
}

const maxEventsOfOne = 64;
/** Four numbers and a place, of which none has more than 16 digits. */
const maxLineLength = 96;
const lineFeed = 0x0a;

/** Cuts a batch into segments. */
export function toSegments(epoch: number, events: readonly NewEvent[], { maxEvents, maxBytes }: LogLimits): Segment[] {
  const mostEvents = Math.max(1, Math.min(maxEventsOfOne, Math.floor(maxEvents / 8)));
  const mostBytes = maxBytes / 64;
  const segments: Segment[] = [];
  for (let from = 0; from < events.length; ) {
    let to = from;
    for (let bytes = 0; to < events.length && to - from < mostEvents; to += 1) {
      bytes += (events[to] as NewEvent).data.length;
      if (to > from && bytes > mostBytes) break;
    }
    segments.push(toSegment(epoch, events.slice(from, to)));
    from = to;
  }
  return segments;
}

function toSegment(epoch: number, events: readonly NewEvent[]): Segment {
  const streams: { readonly stream: number; count: number; ended: boolean }[] = [];
  let seen: (typeof streams)[number] | undefined;
  let dataBytes = 0;
  for (const { stream, last, data } of events) {
    if (seen?.stream !== stream) {
      seen = streams.find((known) => known.stream === stream);
      if (seen === undefined) {
        seen = { stream, count: 0, ended: false };
        streams.push(seen);
      }
    }
    seen.count += 1;
    seen.ended = last;
    dataBytes += data.length;
  }
  const all = Buffer.allocUnsafe(dataBytes + events.length * maxLineLength);
  let at = 0;
  let before: NewEvent | undefined;
  for (const event of events) {
    const { stream, last, previous, data } = event;
    const follows = before?.stream === stream && previous?.seq === before.seq && previous.epoch === epoch;
    if (follows && !last) at = writeDigits(all, at, data.length);
    else {
      const place = previous === undefined ? '' : formatLogPosition(previous);
      at += all.write(`${stream} ${last ? 1 : 0} ${data.length} ${place}`, at, 'latin1');
    }
    before = event;
    all[at++] = lineFeed;
    all.set(data, at);
    at += data.length;
  }
  const list = streams.map(({ stream, count, ended }) => `${stream}:${count}:${ended ? 1 : 0}`);
  const lastSeq = (events.at(-1) as NewEvent).seq;
  return { lastSeq, header: `${events.length} ${dataBytes} ${list.join(' ')}`, data: all.subarray(0, at) };
}

/** All events of a segment, from its entry's id, header (with the time before it) and data. */
export function fromSegment(place: ScriptReply, header: ScriptReply, data: ScriptReply): StoredEvent[] {
  const { epoch, seq: lastSeq } = parseLogPosition(textOf(place));
  const count = Number(textOf(header).split(' ', 2)[1]);
  const bytes = data as Buffer;
  const events: StoredEvent[] = [];
  let at = 0;
  for (let seq = lastSeq - count + 1; seq <= lastSeq; seq += 1) {
    const end = bytes.indexOf(lineFeed, at);
    const words = bytes.toString('latin1', at, end).split(' ');
    const [length, stream, last, place] = words.length === 1 ? words : [words[2], words[0], words[1], words[3]];
    at = end + 1 + Number(length);
    events.push({
      epoch,
      seq,
      stream: stream === undefined ? (events.at(-1) as StoredEvent).stream : Number(stream),
      previous: stream === undefined ? { epoch, seq: seq - 1 } : place ? parseLogPosition(place) : undefined,
      data: bytes.subarray(end + 1, at),
      last: last === '1',
    });
  }
  return events;
}

/**
 * The events of one stream behind a place, at most so many, up to where one before the next was never stored: the next
 * read begins there, and tells the break.
 */
export function eventsOf(
  all: readonly StoredEvent[],
  stream: number,
  after: LogPosition | undefined,
  limit: number,
): StoredEvent[] {
  const found: StoredEvent[] = [];
  for (const event of all) {
    if (event.stream !== stream || (after !== undefined && compareLogPositions(event, after) <= 0)) continue;
    const before = found.at(-1);
    const { previous } = event;
    if (before !== undefined && previous !== undefined && compareLogPositions(previous, before) > 0) break;
    found.push(event);
    if (found.length >= limit) break;
  }
  return found;
}
