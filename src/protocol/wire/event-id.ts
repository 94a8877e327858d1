import type { RequestId } from '../faults.ts';

/**
 * SSE event ids: `<stream>.<epoch>-<seq>~<requests>`, for example `3.1763634000000-42~7` (docs/design.md, D2). Unique over
 * all streams of a session and over all owners it ever had (2025-11-25, basic/transports, "Resumability and Redelivery").
 * The requests are those that the stream answers: an instance that knows nothing of the stream can still end them.
 */

/** A place in a session's event log. A later owner has a larger epoch; within an epoch `seq` counts up by one. */
export interface LogPosition {
  readonly epoch: number;
  readonly seq: number;
}

/** An event id taken apart: which stream of the session, and where in its log. */
export interface EventId extends LogPosition {
  readonly stream: number;
  /** The requests that the stream answers, as `formatRequests` writes them; absent where the id does not name them. */
  readonly requests?: string;
}

/** The longest place this gateway makes has 50 characters; anything much longer is not ours and is not looked at (ReDoS). */
export const maxEventIdLength = 64;
/** Longer requests are not named in event ids, which every event of the stream carries (P8). */
const maxRequestsLength = 128;
const form = /^(0|[1-9]\d{0,15})\.(0|[1-9]\d{0,15})-(0|[1-9]\d{0,15})(~[\w%.!*'(),-]+)?$/;

/**
 * The number in the id of the gateway's last word on a stream that it cannot continue, behind all that a log ever has:
 * nothing follows it. Without an id, SDK v1 would ask from its old place again, be told again, and so on for ever: it takes
 * a stream that ended with an error for unfinished (typescript-sdk#2638).
 */
export const finalSeq = Number.MAX_SAFE_INTEGER;

/** The text of an event id. */
export const formatEventId = (stream: number, { epoch, seq, requests = '' }: Omit<EventId, 'stream'>): string =>
  `${formatEventIdStart(stream, epoch)}${seq}${requests}`;

/** How an event id names the requests that its stream answers; undefined for none, or too long ones. */
export function formatRequests(ids: readonly RequestId[]): string | undefined {
  if (ids.length === 0) return undefined;
  const text = `~${ids.map((id) => encodeURIComponent(JSON.stringify(id))).join()}`;
  return text.length <= maxRequestsLength ? text : undefined;
}

/** The requests that an event id names; none where it does not. */
export function readRequestIds({ requests }: EventId): readonly RequestId[] {
  return requests === undefined ? [] : (parseRequests(requests) ?? []);
}

function parseRequests(text: string): readonly RequestId[] | undefined {
  try {
    const ids: unknown[] = text
      .slice(1)
      .split(',')
      .map((part) => JSON.parse(decodeURIComponent(part)));
    const areIds = (values: unknown[]): values is RequestId[] =>
      values.every((value) => typeof value === 'string' || typeof value === 'number');
    return areIds(ids) && formatRequests(ids) === text ? ids : undefined;
  } catch {
    return undefined; // no text of ours: that is all there is to know of it
  }
}

/** What the ids of all events of a stream under one owner begin with; the event's number follows. */
export const formatEventIdStart = (stream: number, epoch: number): string => `${stream}.${epoch}-`;

/** Reads an event id strictly: undefined for anything that `formatEventId` does not make. */
export function parseEventId(text: string): EventId | undefined {
  if (text.length > maxEventIdLength + maxRequestsLength) return undefined;
  const [, stream, epoch, seq, requests] = form.exec(text) ?? [];
  if (stream === undefined || epoch === undefined || seq === undefined) return undefined;
  const id = { stream: Number(stream), epoch: Number(epoch), seq: Number(seq) };
  if (!Object.values(id).every(Number.isSafeInteger)) return undefined;
  if (requests === undefined) return id;
  return parseRequests(requests) === undefined ? undefined : { ...id, requests };
}

/** Negative if `a` is before `b`, zero if they are the same place, positive if it is after. */
export const compareLogPositions = (a: LogPosition, b: LogPosition): number => a.epoch - b.epoch || a.seq - b.seq;
