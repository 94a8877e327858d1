/**
 * SSE event ids: `<stream>.<epoch>-<seq>`, for example `3.1763634000000-42` (DESIGN decision 2). Unique over all streams
 * of a session and over all owners it ever had (2025-11-25, basic/transports, "Resumability and Redelivery").
 */

/** A place in a session's event log. A later owner has a larger epoch; within an epoch `seq` counts up by one. */
export interface Position {
  readonly epoch: number;
  readonly seq: number;
}

/** An event id taken apart: which stream of the session, and where in its log. */
export interface EventId extends Position {
  readonly stream: number;
}

/** The longest id this gateway makes has 50 characters; anything much longer is not ours and is not looked at (ReDoS). */
export const maxEventIdLength = 64;
const form = /^(0|[1-9]\d{0,15})\.(0|[1-9]\d{0,15})-(0|[1-9]\d{0,15})$/;

/** The text of an event id. */
export const formatEventId = (stream: number, { epoch, seq }: Position): string =>
  `${formatEventIdStart(stream, epoch)}${seq}`;

/** What the ids of all events of a stream under one owner begin with; the event's number follows. */
export const formatEventIdStart = (stream: number, epoch: number): string => `${stream}.${epoch}-`;

/** Reads an event id strictly: undefined for anything that `formatEventId` does not make. */
export function parseEventId(text: string): EventId | undefined {
  if (text.length > maxEventIdLength) return undefined;
  const [, stream, epoch, seq] = form.exec(text) ?? [];
  if (stream === undefined || epoch === undefined || seq === undefined) return undefined;
  const id = { stream: Number(stream), epoch: Number(epoch), seq: Number(seq) };
  return Object.values(id).every(Number.isSafeInteger) ? id : undefined;
}

/** Negative if `a` is before `b`, zero if they are the same place, positive if it is after. */
export const comparePositions = (a: Position, b: Position): number => a.epoch - b.epoch || a.seq - b.seq;
