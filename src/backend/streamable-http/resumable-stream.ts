import type { Reason } from '../../protocol/faults.ts';
import { type Message, reportNoise } from '../../protocol/message/message.ts';
import type { BackpressureGroup } from '../http-client/backpressure-group.ts';
import { EventReader } from '../http-client/event-reader.ts';
import type { HttpResponse } from '../http-client/http-connection.ts';
import { lingerMs } from '../http-client/post-order.ts';
import { type MessageEvent, readEvents } from '../http-client/read-events.ts';
import { maxUnreachableMs, pauseBeforeReconnect } from '../http-client/reconnect-pause.ts';

/** How a stream ended. */
export type ResumableStreamEnd =
  /** All expected messages have come, or nobody waits any more. */
  | { readonly outcome: 'complete' }
  /** The server no longer knows the session. */
  | { readonly outcome: 'forgotten' }
  /** The server does not open the stream. */
  | { readonly outcome: 'refused'; readonly status: number }
  /** `isEnded` if the server has ended the stream in order, so that it did not break. */
  | { readonly outcome: 'lost'; readonly reason: Reason; readonly isEnded?: boolean };

/** Options for following a stream. */
export interface ResumableStreamOptions {
  readonly flow: BackpressureGroup;
  readonly maxLineBytes: number;
  /** How long the stream may be silent, 0 for no limit; then it counts as broken. */
  /** Aborted when nobody waits any more. */
  readonly signal: AbortSignal;
  /** The response to a POST, if the stream begins with it. */
  readonly first?: HttpResponse | undefined;
  /** The last event id that an earlier reader of the stream read. */
  readonly cursor?: string | undefined;
  /**
   * True for the GET stream, which is reopened for as long as the backend lives, also from its beginning. The answer to
   * a POST can only be resumed after an event with an id, and is given up after `maxUnreachableMs`.
   */
  readonly isStandalone: boolean;
  /** Asks the server that refused the stream whether it still knows the session. Never rejects. */
  isForgotten(): Promise<boolean>;
  /** Requests the events after this one; a new stream if there is no event id. Rejects if the server is not reached. */
  open(lastEventId: string | undefined): Promise<HttpResponse>;
  /** True once no further message is needed. */
  isComplete(): boolean;
  /** Called with an `endpoint` event, which only servers of HTTP+SSE send. Nothing more is read of this connection. */
  onEndpoint?(): void;
  /** True if the server may send messages for as long as it keeps the stream open, although none is needed. */
  readonly keepsOpen?: boolean;
  onMessages(messages: readonly Message[]): void;
  onNoise(text: Buffer, more?: number): void;
  /** The event with this id was read, and all before it. Undefined if the server has taken its position back. */
  onCursor(cursor: string | undefined): void;
  /** A connection of the stream has ended. There is no position if the next connection may miss messages. */
  onDisconnected?(cursor: string | undefined): void;
}

/**
 * A GET stream that lived for less than this time ended at once. It is requested again at most this often, and less
 * often if it brings no message.
 */
const shortLifeMs = 1_000;

/** Temporary statuses: the server is busy, or has not noticed yet that the previous connection is gone (409). */
const temporaryStatuses: ReadonlySet<number> = new Set([408, 409, 425, 429, 500, 502, 503, 504]);

/** Statuses for an unknown session. Many servers answer 400 where the specification has 404. */
const unknownStatuses: ReadonlySet<number> = new Set([400, 404]);

/**
 * A GET stream that was open exists, so further statuses are temporary: the client's next request can bring other
 * credentials (401, 403), and the session is known all the same (400, 404).
 */
const reopenedStatuses: ReadonlySet<number> = new Set([...temporaryStatuses, ...unknownStatuses, 401, 403]);

/**
 * Reads an SSE stream over as many connections as it needs (2025-11-25, basic/transports, "Resumability and
 * Redelivery"). When the stream ends or breaks before it is complete, it is resumed after its last event id. No message
 * is delivered twice, as long as the server keeps to its ids.
 */
export async function readResumableStream(parts: ResumableStreamOptions): Promise<ResumableStreamEnd> {
  const { signal, isStandalone } = parts;
  let answer = parts.first;
  let lastEventId = parts.cursor;
  let wasOpen = answer !== undefined || lastEventId !== undefined;
  let hasTried = wasOpen;
  let requestedMs: number | undefined;
  let failures = 0;
  let awaySince = performance.now();
  let leastPauseMs = 0;
  for (;;) {
    if (answer !== undefined) {
      const openedAt = performance.now();
      const read = await readStream(answer, lastEventId, parts);
      if (parts.isComplete() || signal.aborted) return { outcome: 'complete' };
      if (read.isTooLong) return { outcome: 'lost', reason: 'line_too_long' };
      lastEventId = read.lastEventId;
      requestedMs = read.retryMs ?? requestedMs;
      if (!isStandalone && lastEventId === undefined)
        return { outcome: 'lost', reason: 'server_unreachable', isEnded: read.isEnded };
      parts.onDisconnected?.(lastEventId);
      awaySince = performance.now();
      // A server that opens an empty stream each time must not be asked in a loop.
      const isShort = awaySince - openedAt < shortLifeMs;
      const isFailure = isStandalone ? isShort && !read.hasMessages : !read.hasMoved;
      failures = isFailure ? failures + 1 : 0;
      leastPauseMs = isStandalone && isShort ? shortLifeMs : 0;
    }
    const hasNoLimit = isStandalone || requestedMs !== undefined;
    const leftMs = hasNoLimit ? Number.POSITIVE_INFINITY : awaySince + maxUnreachableMs - performance.now();
    if (hasTried && !(await pauseBeforeReconnect(failures, { requestedMs, leastMs: leastPauseMs, leftMs, signal })))
      return { outcome: 'complete' };
    hasTried = true;
    answer = await parts.open(lastEventId).catch(() => undefined); // not reached: tried again, within the limit below
    if (answer !== undefined && isEventStream(answer)) {
      wasOpen = true;
      continue;
    }
    const status = answer?.status;
    await answer?.body.drain().catch(() => undefined); // the body is of no interest
    // A server that never opened the stream may not have it.
    if (wasOpen && unknownStatuses.has(status ?? 0) && (await parts.isForgotten())) return { outcome: 'forgotten' };
    const statuses = isStandalone && wasOpen ? reopenedStatuses : temporaryStatuses;
    if (status !== undefined && !statuses.has(status)) return { outcome: 'refused', status };
    if (!isStandalone && performance.now() - awaySince >= maxUnreachableMs) {
      return { outcome: 'lost', reason: 'server_unreachable' };
    }
    leastPauseMs = isStandalone && status !== undefined ? shortLifeMs : 0;
    answer = undefined;
    failures += 1;
  }
}

/** True for the head of a stream. */
export const isEventStream = ({ status, mediaType }: HttpResponse): boolean =>
  status === 200 && mediaType === 'text/event-stream';

/**
 * Reads one connection of the stream to its end, however it ends.
 * @param from the position before it
 */
async function readStream({ body }: HttpResponse, from: string | undefined, parts: ResumableStreamOptions) {
  const { flow, maxLineBytes, isComplete, onMessages, onNoise, onCursor } = parts;
  const reader = new EventReader({ maxEventBytes: maxLineBytes });
  let lastEventId = from;
  let hasMoved = false;
  let hasMessages = false;
  let linger: NodeJS.Timeout | undefined;
  const endIfComplete = (): void => {
    if (isComplete() && parts.keepsOpen !== true) linger ??= setTimeout(() => body.destroy(), lingerMs);
  };
  const handleEvents = (events: readonly MessageEvent[]): void => {
    if (parts.onEndpoint !== undefined && events.some(({ type }) => type === 'endpoint')) {
      parts.onEndpoint();
      return body.destroy();
    }
    const messages: Message[] = [];
    const previousId = lastEventId;
    for (const event of events) {
      // An empty id means that there is no position (HTML, 9.2.6).
      if (event.id !== undefined) lastEventId = event.id === '' ? undefined : event.id;
      messages.push(...event.messages);
    }
    reportNoise({ onNoise }, events);
    hasMessages ||= messages.length > 0;
    hasMoved ||= lastEventId !== previousId;
    if (messages.length > 0) onMessages(messages);
    if (lastEventId !== previousId) onCursor(lastEventId);
    if (reader.overflow !== undefined) body.destroy();
    else endIfComplete();
  };
  endIfComplete(); // a notification needs no answer
  // broken or ended: the stream is resumed in both cases
  const isEnded = await flow
    .read(body, (chunk) => readEvents(reader, chunk, handleEvents))
    .then(() => true)
    .catch(() => false);
  clearTimeout(linger);
  const isTooLong = reader.overflow !== undefined;
  return { lastEventId, hasMoved, hasMessages, isEnded, isTooLong, retryMs: reader.retryMs };
}
