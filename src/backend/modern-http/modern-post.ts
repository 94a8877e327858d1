import type { Reason, RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { mayBeOrdinaryError } from '../../protocol/http/upstream-challenge.ts';
import { openRequest } from '../../protocol/ids/answer-ids.ts';
import {
  type Message,
  readServerTexts,
  reportNoise,
  type ServerMessages,
  withId,
} from '../../protocol/message/message.ts';
import { flattenLineBreaks } from '../../protocol/wire/lines.ts';
import {
  explainConnectFailure,
  explainRefusal,
  type LoginOffer,
  noTokenReason,
  readLoginOffer,
  reasonOfStatus,
} from '../connect-failure.ts';
import type { BackpressureGroup } from '../http-client/backpressure-group.ts';
import type { Canceller } from '../http-client/canceller.ts';
import { EventReader } from '../http-client/event-reader.ts';
import { type HttpConnection, type HttpResponse, postHeaders, retryAfterOf } from '../http-client/http-connection.ts';
import { readJsonBody, readRefusalText } from '../http-client/json-body.ts';
import { lingerMs } from '../http-client/post-order.ts';
import { type MessageEvent, readEvents } from '../http-client/read-events.ts';
import { isUnsentAfter, maxWaitAfter, pauseBeforeReconnect } from '../http-client/reconnect-pause.ts';
import type { NoTokenReason } from '../identity/upstream-tokens.ts';

/** Options common to all POSTs to one server. */
export interface ModernPostOptions {
  readonly url: URL;
  readonly connection: HttpConnection;
  readonly flow: BackpressureGroup;
  readonly maxLineBytes: number;
  /** How long a stream may be silent, 0 for no limit; then it counts as broken. */
}

/** A message that is posted. */
export interface ModernPost {
  readonly message: Message;
  /** Headers besides those that every POST has. */
  readonly headers: Readonly<Record<string, string>>;
  /** The headers of the client's request, which are among these. */
  readonly forwarded: ForwardedHeaders;
  /** Aborts the POST when nobody waits any more. */
  readonly canceller: Canceller;
  /** True if the POST is retried until a connection to the server is established; false if it is sent once only. */
  readonly waitsForServer: boolean;
}

/** A request that is posted. */
export interface ModernRequestPost extends ModernPost {
  readonly id: RequestId;
  /** The head of a response came: the server has the request. */
  onAccepted(): void;
  /** Notifications that come before the response, in order. */
  onNotifications(messages: readonly Message[]): void;
  onNoise(text: Buffer, more?: number): void;
}

/** How a request ended. */
export type ModernPostOutcome =
  | { readonly ok: true; readonly response: Message; readonly status: number; readonly offer?: LoginOffer }
  | ModernPostFailure;

/** There is no response, and will be none. */
export interface ModernPostFailure {
  readonly ok: false;
  readonly reason: Reason;
  /** One sentence for the operator, without contents. */
  readonly detail: string;
  /** The status with which the server refused the request. */
  readonly status?: number;
  /** The server refused the request for now, and named this time. */
  readonly retryAfterS?: number | undefined;
  /** The server has begun to answer. */
  readonly isAnswered?: boolean;
  /** No connection was established for as long as a request waits for its server. */
  readonly isUnreachable?: boolean;
  /** The request was not sent, because the gateway has no token for it. */
  readonly noToken?: NoTokenReason | undefined;
}

/**
 * Posts one request and reads its answer up to the response: JSON, or a stream (2026-07-28,
 * basic/transports/streamable-http). If no connection is established, the POST is retried for `maxWaitAfter`: the
 * server has not seen it. Any other POST is sent once. Never rejects.
 */
export async function postModernRequest(post: ModernRequestPost, parts: ModernPostOptions): Promise<ModernPostOutcome> {
  const { url, flow, maxLineBytes } = parts;
  const where = url.origin;
  try {
    const answer = await postModernMessage(post, parts);
    post.onAccepted();
    const { status, mediaType, body } = answer;
    const isAccepted = status >= 200 && status <= 299;
    if (parts.connection.noteChallenge(answer, post.forwarded))
      return await readRefusal(answer, post, parts, 'passed-on');
    if (isAccepted && mediaType === 'text/event-stream') return await readStream(answer, post, parts);
    if (!isAccepted) return await readRefusal(answer, post, parts, readLoginOffer(answer.headers));
    if (mediaType === 'application/json') {
      const json = await readJsonBody(body, flow, maxLineBytes);
      if (json === undefined) return tooLongPost(where, maxLineBytes);
      const flat = flattenLineBreaks(json);
      const response = responseTo(await readServerTexts([flat]), post.id);
      if (response !== undefined) return { ok: true, response, status };
    } else await body.drain();
    return refusedPost(`${where} answered a request with neither a response nor an event stream (${status}).`);
  } catch (cause) {
    const isUnreachable = post.waitsForServer && isUnsentAfter(cause);
    return {
      ok: false,
      reason: noTokenReason(cause) ?? 'server_unreachable',
      detail: explainConnectFailure(cause, where),
      isUnreachable,
      noToken: noTokenReason(cause),
    };
  }
}

/** Reads an answer with another status than 2xx, which can be the server's error. */
async function readRefusal(
  answer: HttpResponse,
  { id }: ModernRequestPost,
  { url, flow, maxLineBytes }: ModernPostOptions,
  offer: LoginOffer,
): Promise<ModernPostOutcome> {
  const { status, headers, body } = answer;
  if (offer === 'passed-on' && !mayBeOrdinaryError(status, headers)) await body.drain();
  else {
    const text = await readRefusalText(answer, flow, maxLineBytes);
    const response = text === undefined ? undefined : responseTo(await readServerTexts([text]), id);
    // What is no message says less than the status.
    if (response !== undefined && response.standIn?.reason !== 'bad_response')
      return { ok: true, response, status, offer };
  }
  return { ...refusedPost(explainModernStatus(status, url.origin, offer), status), retryAfterS: retryAfterOf(answer) };
}

/**
 * Posts one message, and retries until a connection is established, within the limit. Rejects if no head of a response
 * comes.
 */
export async function postModernMessage(
  { message, headers, canceller, waitsForServer }: ModernPost,
  { url, connection }: Pick<ModernPostOptions, 'url' | 'connection'>,
): Promise<HttpResponse> {
  const startedAt = performance.now();
  const body = flattenLineBreaks(message.text);
  for (let failures = 0; ; failures++) {
    try {
      const allHeaders = { ...headers, ...postHeaders };
      return await connection.request({ method: 'POST', url, headers: allHeaders, body, signal: canceller });
    } catch (cause) {
      const leftMs = startedAt + maxWaitAfter(cause) - performance.now();
      const isTooLate = !waitsForServer || leftMs <= 0;
      if (
        isTooLate ||
        !isUnsentAfter(cause) ||
        !(await pauseBeforeReconnect(failures, { leftMs, signal: canceller.signal }))
      )
        throw cause;
    }
  }
}

const refusedPost = (detail: string, status?: number): ModernPostFailure => ({
  ok: false,
  reason: reasonOfStatus(status),
  detail,
  isAnswered: true,
  ...(status !== undefined && { status }),
});

const tooLongPost = (where: string, maxBytes: number): ModernPostFailure => ({
  ok: false,
  reason: 'line_too_long',
  detail: `${where} answered a request with more than ${maxBytes} bytes.`,
});

/** Resolves with the response as soon as it comes; the rest of the stream is read in the background and ignored. */
function readStream(
  { status, body }: HttpResponse,
  post: ModernRequestPost,
  parts: ModernPostOptions,
): Promise<ModernPostOutcome> {
  const { url, flow, maxLineBytes } = parts;
  const where = url.origin;
  const reader = new EventReader({ maxEventBytes: maxLineBytes });
  return new Promise((resolve) => {
    let linger: NodeJS.Timeout | undefined;
    const handleEvents = (events: readonly MessageEvent[]): void => {
      if (linger !== undefined) return;
      const notifications: Message[] = [];
      const others: ServerMessages[] = [];
      let response: Message | undefined;
      for (const found of events) {
        response = responseTo(found, post.id);
        if (response !== undefined) break;
        others.push(found);
        notifications.push(...found.messages);
      }
      reportNoise(post, others);
      if (notifications.length > 0) post.onNotifications(notifications);
      if (response !== undefined) {
        linger = setTimeout(() => body.destroy(), lingerMs);
        resolve({ ok: true, response, status });
      } else if (reader.overflow !== undefined) {
        resolve(tooLongPost(where, maxLineBytes));
        body.destroy();
      }
    };
    const settle = (failure: ModernPostFailure): void => {
      clearTimeout(linger);
      resolve(failure); // has no effect if the response came before
    };
    const broken = `The response stream of ${where} ended before the response.`;
    flow
      .read(body, (chunk) => readEvents(reader, chunk, handleEvents))
      .then(
        () => settle({ ok: false, reason: 'server_unreachable', detail: broken, isAnswered: true }),
        () => settle({ ok: false, reason: 'server_unreachable', detail: broken }),
      );
  });
}

/**
 * The response to a request, if a text is nothing else. An error without an id, or with null, must answer the only
 * request of the POST.
 */
function responseTo({ messages, noise }: ServerMessages, id: RequestId): Message | undefined {
  const [message, ...others] = messages;
  if (message?.kind !== 'response' || others.length > 0 || noise.length > 0) return undefined;
  if (message.id === id) return message;
  const isOwn =
    message.id == null ? message.isError : openRequest(message.id, { has: (open) => open === id }) !== undefined;
  return isOwn ? withId(message, id) : undefined;
}

/** Explains to the operator a status that refuses a message, with advice. */
export function explainModernStatus(status: number, where: string, offer: LoginOffer = 'none'): string {
  const refusal = explainRefusal(status, where, offer);
  if (refusal !== undefined) return refusal;
  if (status === 404 || status === 405) {
    return `${where} accepts no requests at this path (${status}). Correct the URL; many end in /mcp.`;
  }
  return `${where} answered a request with status ${status}.`;
}
