import { maxUnreachableMs, pauseBeforeReconnect } from '../../../core/backend/reconnect-pause.ts';
import type { Reason } from '../../../core/protocol/faults.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { reportNoise } from '../../../core/protocol/message/server-texts.ts';
import type { BackpressureGroup } from './backpressure-group.ts';
import type { Canceller } from './canceller.ts';
import { EventReader } from './event-reader.ts';
import type { HttpResponse } from './http-connection.ts';
import { lingerMs } from './post-order.ts';
import { type MessageEvent, readEvents } from './read-events.ts';

/** What is read of a stream, and who gets it. */
export interface EventStreamOptions {
  readonly flow: BackpressureGroup;
  readonly maxLineBytes: number;
  /** True once no further message is needed: the server may keep the stream for `lingerMs` then. */
  isComplete?(): boolean;
  /** True if the server may send messages for as long as it keeps the stream open, although none is needed. */
  readonly keepsOpen?: boolean;
  /** Called with each `endpoint` event, after the messages before it. Nothing more is read if it returns false. */
  onEndpoint?(data: Buffer): boolean;
  onMessages(messages: readonly Message[]): void;
  onNoise(text: Buffer, more?: number): void;
  /** The event with this id was read, and all before it. Undefined if the server has taken its position back. */
  onCursor?(cursor: string | undefined): void;
}

/** What one connection of a stream has brought. */
export interface ReadEventStream {
  /** The last event id that was read; undefined if there is no position. */
  readonly cursor: string | undefined;
  readonly hasMoved: boolean;
  readonly hasMessages: boolean;
  /** Why the stream broke; undefined if the server has ended it in order. */
  readonly cause: unknown;
  /** An event was larger than a message may be: one sentence about it. */
  readonly overflow: string | undefined;
  /** The pause before the next connection that the server asked for. */
  readonly retryMs: number | undefined;
}

/**
 * Reads one connection of an event stream to its end, however it ends. Never rejects.
 * @param from the position before it
 */
export async function readEventStream(
  body: HttpResponse['body'],
  options: EventStreamOptions,
  from?: string,
): Promise<ReadEventStream> {
  const { flow, maxLineBytes, isComplete, keepsOpen, onEndpoint, onMessages, onCursor } = options;
  const reader = new EventReader({ maxEventBytes: maxLineBytes });
  let cursor = from;
  let hasMoved = false;
  let hasMessages = false;
  let isStopped = false;
  let linger: NodeJS.Timeout | undefined;
  const endIfComplete = (): void => {
    if (keepsOpen !== true && isComplete?.()) linger ??= setTimeout(() => body.destroy(), lingerMs);
  };
  const deliver = (events: readonly MessageEvent[], next: string | undefined): void => {
    const messages = events.flatMap((event) => event.messages);
    reportNoise(options, events);
    hasMessages ||= messages.length > 0;
    if (messages.length > 0) onMessages(messages);
    if (next === cursor) return;
    hasMoved = true;
    cursor = next;
    onCursor?.(next);
  };
  const handleEvents = (events: readonly MessageEvent[]): void => {
    if (isStopped) return;
    let next = cursor;
    let first = 0;
    for (const [index, { type, id, data }] of events.entries()) {
      // An empty id means that there is no position (HTML, 9.2.6).
      if (id !== undefined) next = id === '' ? undefined : id;
      if (type !== 'endpoint' || onEndpoint === undefined) continue;
      deliver(events.slice(first, index + 1), next);
      first = index + 1;
      isStopped = !onEndpoint(data);
      if (isStopped) return body.destroy();
    }
    deliver(first === 0 ? events : events.slice(first), next);
    if (reader.overflow !== undefined) body.destroy();
    else endIfComplete();
  };
  endIfComplete(); // a notification needs no answer
  let cause: unknown;
  try {
    await flow.read(body, (chunk) => readEvents(reader, chunk, handleEvents));
  } catch (broken) {
    cause = broken;
  }
  clearTimeout(linger);
  return { cursor, hasMoved, hasMessages, cause, overflow: reader.overflow, retryMs: reader.retryMs };
}

/** How a followed stream ended. */
export type EventStreamEnd =
  /** All expected messages have come, or nobody waits any more. */
  | { readonly outcome: 'complete' }
  /** The server no longer knows the session. */
  | { readonly outcome: 'forgotten' }
  /** The server does not open the stream. */
  | { readonly outcome: 'refused'; readonly status: number }
  /** `isEnded` if the server has ended the stream in order, so that it did not break. */
  | { readonly outcome: 'lost'; readonly reason: Reason; readonly detail?: string; readonly isEnded?: boolean };

/** Options for following a stream. */
export interface FollowOptions extends EventStreamOptions {
  /** Aborted when nobody waits any more. */
  readonly canceller: Canceller;
  /** The response to a POST, if the stream begins with it. */
  readonly first?: HttpResponse | undefined;
  /** The last event id that an earlier reader of the stream read. */
  readonly cursor?: string | undefined;
  /**
   * True for the GET stream, which is reopened for as long as the backend lives, also from its beginning. The answer to
   * a POST can only be resumed after an event with an id, and is given up after `maxUnreachableMs`. That time also ends
   * an answer that broke and is then resumed with nothing.
   */
  readonly isStandalone: boolean;
  /** Asks the server that refused the stream whether it has forgotten the session. Never rejects. */
  isForgotten(): Promise<boolean>;
  /**
   * Requests the events after this one; a new stream if there is no event id. Rejects if the server is not reached.
   * Absent where the server resumes no stream.
   */
  readonly open?: ((lastEventId: string | undefined) => Promise<HttpResponse>) | undefined;
  /** A connection of the stream has ended. There is no position if the next connection may miss messages. */
  onDisconnected?(cursor: string | undefined): void;
}

/**
 * A GET stream that lived for less than this time ended at once. It is requested again at most this often, and less
 * often if it brings no message.
 */
const shortLifeMs = 1_000;

/**
 * A server resumes an answer that broke with this many empty streams, before the answer is given up. Some SDKs forget the
 * stream of a call (Java), or one that has ended (rmcp), and open an empty one instead of an error: the client would wait
 * for ever. A server that ended the stream itself has its client ask again, so it is asked without a limit.
 */
const maxEmptyStreams = 3;

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
 * Follows an event stream over as many connections as it needs (2025-11-25, basic/transports, "Resumability and
 * Redelivery"). When the stream ends or breaks before it is complete, it is resumed after its last event id. No message
 * is delivered twice, as long as the server keeps to its ids.
 */
export async function followEventStream(options: FollowOptions): Promise<EventStreamEnd> {
  const { canceller, isStandalone, open, isComplete = () => false } = options;
  let answer = options.first;
  let { cursor } = options;
  let wasOpen = answer !== undefined || cursor !== undefined;
  let hasTried = wasOpen;
  let requestedMs: number | undefined;
  let failures = 0;
  let awaySince = performance.now();
  let leastPauseMs = 0;
  let hasBroken = false;
  for (;;) {
    if (answer !== undefined) {
      const openedAt = performance.now();
      const read = await readEventStream(answer.body, options, cursor);
      if (isComplete() || canceller.aborted) return { outcome: 'complete' };
      if (read.overflow !== undefined) return { outcome: 'lost', reason: 'line_too_long', detail: read.overflow };
      cursor = read.cursor;
      requestedMs = read.retryMs ?? requestedMs;
      if (open === undefined || (!isStandalone && cursor === undefined))
        return { outcome: 'lost', reason: 'server_unreachable', isEnded: read.cause === undefined };
      options.onDisconnected?.(cursor);
      const endedAt = performance.now();
      // A server that opens an empty stream each time must not be asked in a loop.
      const isShort = endedAt - openedAt < shortLifeMs;
      const isFailure = isStandalone ? isShort && !read.hasMessages : !read.hasMoved;
      failures = isFailure ? failures + 1 : 0;
      const isEmpty = isShort && read.cause === undefined && !read.hasMoved && !read.hasMessages;
      if (!isStandalone && hasBroken && isEmpty) {
        if (failures >= maxEmptyStreams && endedAt - awaySince >= maxUnreachableMs)
          return { outcome: 'lost', reason: 'server_unreachable' };
      } else {
        hasBroken = read.cause !== undefined;
        awaySince = endedAt;
      }
      leastPauseMs = isStandalone && isShort ? shortLifeMs : 0;
    }
    const hasNoLimit = isStandalone || requestedMs !== undefined;
    const leftMs = hasNoLimit ? Number.POSITIVE_INFINITY : awaySince + maxUnreachableMs - performance.now();
    const pause = { requestedMs, leastMs: leastPauseMs, leftMs };
    if (hasTried && !(await pauseBeforeReconnect(failures, { ...pause, signal: canceller.signal })))
      return { outcome: 'complete' };
    hasTried = true;
    answer = await open?.(cursor).catch(() => undefined); // not reached: tried again, within the limit below
    if (answer !== undefined && isEventStream(answer)) {
      wasOpen = true;
      continue;
    }
    const status = answer?.status;
    await answer?.body.drain().catch(() => undefined); // the body is of no interest
    // A server that never opened the stream may not have it.
    if (wasOpen && unknownStatuses.has(status ?? 0) && (await options.isForgotten())) return { outcome: 'forgotten' };
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
