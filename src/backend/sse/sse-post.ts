import type { Reason, RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { mayBeOrdinaryError } from '../../protocol/http/upstream-challenge.ts';
import { answeredIn } from '../../protocol/ids/answer-ids.ts';
import { type Message, readServerTexts, reportNoise } from '../../protocol/message/message.ts';
import { flattenLineBreaks } from '../../protocol/wire/lines.ts';
import { errorCodeOf } from '../../util/text/error-code.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import { noTokenReason, reasonOfStatus } from '../connect-failure.ts';
import type { BackpressureGroup } from '../http-client/backpressure-group.ts';
import type { Canceller } from '../http-client/canceller.ts';
import { EventReader } from '../http-client/event-reader.ts';
import { type HttpConnection, type HttpResponse, postHeaders, retryAfterOf } from '../http-client/http-connection.ts';
import { readJsonBody, readRefusalMessages } from '../http-client/json-body.ts';
import { lingerMs } from '../http-client/post-order.ts';
import { type MessageEvent, readEvents } from '../http-client/read-events.ts';
import { isForgottenStatus, isMethodMissing, mayMeanForgotten } from '../http-client/session-probe.ts';
import type { NoTokenReason } from '../identity/upstream-tokens.ts';

/** The error for the requests of a failed POST. The detail is one sentence for the operator, without contents. */
export interface SsePostFailure {
  readonly ok: false;
  readonly reason: Reason;
  readonly detail: string;
  /** The server refused the message for now, and named this time. */
  readonly retryAfterS?: number | undefined;
  /** The server no longer knows the session, and has not accepted the message. */
  readonly isForgotten?: boolean;
  /** The message was not sent, because the gateway has no token for it. */
  readonly noToken?: NoTokenReason | undefined;
}

/** The outcome of a POST. */
export type SsePostOutcome = { readonly ok: true } | SsePostFailure;

/** Options of a POST. */
export interface SsePostOptions {
  readonly connection: HttpConnection;
  readonly flow: BackpressureGroup;
  /** Headers of the client request that carried the message. */
  readonly headers: ForwardedHeaders;
  /** Aborts the POST: nobody waits for it any more. */
  readonly canceller: Canceller;
  /** The unanswered requests of the POST. */
  readonly unanswered: ReadonlySet<RequestId>;
  /**
   * How long the server may take for the head of its response, and for the body unless that is a stream; no limit if
   * undefined.
   */
  readonly limitMs?: number;
  readonly maxLineBytes: number;
  /** Asks the server whether it has forgotten the session. Absent before the session has begun. */
  readonly isForgotten?: (() => Promise<boolean>) | undefined;
  /** Messages in the response to the POST, as some servers send them. */
  onMessages(messages: readonly Message[]): void;
  onNoise(text: Buffer, more?: number): void;
  /** The response is larger than a message may be. */
  onTooLong(detail: string): void;
}

/**
 * Posts one message. Any 2xx means that the server has accepted it (2024-11-05 requires no more). The answer comes on
 * the stream, or in the body of this response as JSON or SSE. Never rejects.
 */
export async function postToSseServer(url: URL, message: Message, parts: SsePostOptions): Promise<SsePostOutcome> {
  const { connection, canceller, limitMs } = parts;
  let hasExpired = false;
  const expire = (): void => {
    hasExpired = true;
    canceller.abort();
  };
  const limit = limitMs === undefined ? undefined : new TimeLimit(expire, limitMs);
  try {
    const headers = { ...parts.headers, ...postHeaders };
    const body = flattenLineBreaks(message.text);
    const answer = await connection.request({ method: 'POST', url, headers, body, signal: canceller });
    return isAccepted(answer) ? await readAnswer(answer, parts) : await readRefusal(answer, message, parts);
  } catch (cause) {
    if (hasExpired)
      return { ok: false, reason: 'server_unreachable', detail: `A POST was not answered within ${limitMs} ms.` };
    return canceller.aborted ? { ok: true } : brokenPost(cause);
  } finally {
    limit?.clear();
  }
}

const brokenPost = (cause: unknown): SsePostFailure => ({
  ok: false,
  reason: noTokenReason(cause) ?? 'server_unreachable',
  detail: noTokenReason(cause) === undefined ? `A POST failed (${errorCodeOf(cause)}).` : (cause as Error).message,
  noToken: noTokenReason(cause),
});

const isAccepted = ({ status }: HttpResponse): boolean => status >= 200 && status <= 299;

/**
 * The server refused the POST, or its answer is an error with another status than 200. For `initialize`, such an error is
 * a refusal too, so that a session whose server is restored can wait for the next token.
 */
async function readRefusal(answer: HttpResponse, message: Message, parts: SsePostOptions): Promise<SsePostOutcome> {
  const { status, headers, body } = answer;
  const { connection, flow, maxLineBytes, unanswered, onMessages, isForgotten } = parts;
  const detail = `A POST was answered with status ${status}.`;
  const isChallenge = connection.noteChallenge(answer, parts.headers);
  if (message.method === 'initialize' || (isChallenge && !mayBeOrdinaryError(status, headers))) await body.drain();
  else {
    const messages = await readRefusalMessages(answer, flow, maxLineBytes);
    const isDoubt = isForgottenStatus(status) || messages.some(mayMeanForgotten);
    if (isDoubt && !messages.some(isMethodMissing) && (await isForgotten?.()) === true)
      return { ok: false, reason: 'server_refused', detail, isForgotten: true };
    if (answeredIn(messages, unanswered).length > 0) {
      onMessages(messages);
      if (unanswered.size === 0) return { ok: true };
    }
  }
  return { ok: false, reason: reasonOfStatus(status), detail, retryAfterS: retryAfterOf(answer) };
}

async function readAnswer(answer: HttpResponse, parts: SsePostOptions): Promise<SsePostOutcome> {
  const { mediaType, body } = answer;
  if (mediaType === 'text/event-stream') {
    const read = readStream(body, parts);
    if (parts.unanswered.size > 0) return read; // otherwise the next message need not wait for the end of this response
  } else if (mediaType === 'application/json') {
    await readJson(body, parts);
  } else {
    await body.drain(0); // closing it early could end the call
  }
  return { ok: true };
}

async function readJson(
  body: HttpResponse['body'],
  { flow, maxLineBytes, onMessages, onTooLong }: SsePostOptions,
): Promise<void> {
  const text = await readJsonBody(body, flow, maxLineBytes);
  if (text === undefined) return onTooLong(`The server answered a POST with more than ${maxLineBytes} bytes.`);
  // Some servers answer `{"status":"ok"}`, which is no message of the protocol.
  const { messages } = await readServerTexts([flattenLineBreaks(text)]);
  if (messages.length > 0) onMessages(messages);
}

/**
 * Reads a stream to its end. A regular end fails no request: the answers can still come on the backend's own stream.
 */
async function readStream(body: HttpResponse['body'], parts: SsePostOptions): Promise<SsePostOutcome> {
  const { flow, maxLineBytes, unanswered, onMessages, onNoise, onTooLong } = parts;
  const reader = new EventReader({ maxEventBytes: maxLineBytes });
  const takeEvents = (events: readonly MessageEvent[]): void => {
    const found = events.flatMap(({ messages }) => messages);
    reportNoise({ onNoise }, events);
    if (found.length > 0) onMessages(found);
    if (reader.overflow === undefined) return;
    onTooLong(reader.overflow);
    body.destroy();
  };
  // A notification needs no answer. For a request, the caller of the POST sets the limit.
  const linger = unanswered.size > 0 ? undefined : setTimeout(() => body.destroy(), lingerMs);
  try {
    await flow.read(body, (chunk) => readEvents(reader, chunk, takeEvents));
  } catch (cause) {
    if (unanswered.size > 0) return brokenPost(cause);
  } finally {
    clearTimeout(linger);
  }
  return { ok: true };
}
