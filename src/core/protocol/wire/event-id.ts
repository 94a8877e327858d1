import type { RequestId } from '../faults.ts';
import { parseBounded } from '../json.ts';

/**
 * SSE event ids: `<stream>.<epoch>-<seq>~<requests>`, for example `3.1763634000000-42~7` (docs/design.md, D2). They are
 * unique over all streams of a session and over all of its owners (2025-11-25, basic/transports, "Resumability and
 * Redelivery"). The requests are those that the stream answers. So an instance that knows nothing else of the stream
 * can still end them.
 */

/** A position in a session's event log. A later owner has a larger epoch; within an epoch `seq` counts up by one. */
export interface LogPosition {
  readonly epoch: number;
  readonly seq: number;
}

/** A parsed event id: a stream of the session, and a position in its log. */
export interface EventId extends LogPosition {
  readonly stream: number;
  /** The requests that the stream answers, as `formatRequests` writes them; absent where the id does not name them. */
  readonly requests?: string;
}

/**
 * The longest position that this gateway writes has 50 characters. Anything much longer is foreign, and is not matched
 * (ReDoS).
 */
export const maxEventIdLength = 64;
/** Longer lists of requests are left out of event ids, which every event of the stream carries (P8). */
const maxRequestsLength = 128;
const eventIdPattern = /^(0|[1-9]\d{0,15})\.(0|[1-9]\d{0,15})-(0|[1-9]\d{0,15})(~[\w%.!*'(),~-]+)?$/;

/**
 * The number in the id of the final event on a stream that the gateway cannot continue. It is larger than any number in
 * a log, so nothing follows it. Without an id, SDK v1 would resume from its old position, get the same event again, and
 * repeat this forever. It takes a stream that ended with an error for unfinished (typescript-sdk#2638).
 */
export const finalSeq = Number.MAX_SAFE_INTEGER;

/** Formats an event id. */
export const formatEventId = (stream: number, { epoch, seq, requests = '' }: Omit<EventId, 'stream'>): string =>
  `${formatEventIdStart(stream, epoch)}${seq}${requests}`;

/** Formats the requests that a stream answers for its event ids; undefined for none, or if the text is too long. */
export function formatRequests(ids: readonly RequestId[]): string | undefined {
  if (ids.length === 0) return undefined;
  const text = `~${ids.map((id) => encodeURIComponent(JSON.stringify(id))).join()}`;
  return text.length <= maxRequestsLength ? text : undefined;
}

/** The requests that an event id names; empty if it names none. */
export function readRequestIds({ requests }: EventId): readonly RequestId[] {
  return requests === undefined ? [] : (parseRequests(requests) ?? []);
}

function parseRequests(text: string): readonly RequestId[] | undefined {
  try {
    const ids: unknown[] = text
      .slice(1)
      .split(',')
      .map((part) => parseBounded(decodeURIComponent(part), maxRequestsLength));
    const areIds = (values: unknown[]): values is RequestId[] =>
      values.every((value) => typeof value === 'string' || typeof value === 'number');
    return areIds(ids) && formatRequests(ids) === text ? ids : undefined;
  } catch {
    return undefined; // foreign text
  }
}

/** The common beginning of the ids of all events of a stream under one owner; the event's number follows. */
export const formatEventIdStart = (stream: number, epoch: number): string => `${stream}.${epoch}-`;

/** Parses an event id strictly: undefined for anything that `formatEventId` does not write. */
export function parseEventId(text: string): EventId | undefined {
  if (text.length > maxEventIdLength + maxRequestsLength) return undefined;
  const [, stream, epoch, seq, requests] = eventIdPattern.exec(text) ?? [];
  if (stream === undefined || epoch === undefined || seq === undefined) return undefined;
  const id = { stream: Number(stream), epoch: Number(epoch), seq: Number(seq) };
  if (!Object.values(id).every(Number.isSafeInteger)) return undefined;
  if (requests === undefined) return id;
  return parseRequests(requests) === undefined ? undefined : { ...id, requests };
}

/** Negative if `a` is before `b`, zero if they are the same position, positive if it is after. */
export const compareLogPositions = (a: LogPosition, b: LogPosition): number => a.epoch - b.epoch || a.seq - b.seq;
