import type { Reason, RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { readLarge } from '../../protocol/message/message.ts';
import { flattenLineBreaks } from '../../protocol/wire/lines.ts';
import { connectErrorCode, reasonOfStatus } from '../connect-failure.ts';
import type { BackpressureGroup } from '../http-client/backpressure-group.ts';
import type { Canceller } from '../http-client/canceller.ts';
import { createEventReader } from '../http-client/event-reader.ts';
import { type HttpConnection, type HttpResponse, postHeaders } from '../http-client/http-connection.ts';
import { readJsonBody } from '../http-client/json-body.ts';
import { messagesIn } from '../http-client/message-texts.ts';
import { lingerMs } from '../http-client/post-order.ts';
import { type MessageEvent, readEvents } from '../http-client/read-events.ts';

/** Its requests get this error. The detail is one sentence for the operator, without contents. */
export interface SsePostFailure {
  readonly ok: false;
  readonly reason: Reason;
  readonly detail: string;
}

/** What became of a message that was posted. */
export type SsePostOutcome = { readonly ok: true } | SsePostFailure;

/** What posting needs of its backend. */
export interface SsePostOptions {
  readonly connection: HttpConnection;
  readonly flow: BackpressureGroup;
  /** Of the client's request that brought the message. */
  readonly headers: ForwardedHeaders;
  /** Gives it up: nobody waits for it any more. */
  readonly cut: Canceller;
  /** Its requests that are not answered. */
  readonly open: ReadonlySet<RequestId>;
  /** How long the server may take for its answer, and for all of it unless that is a stream; for ever if there is none. */
  readonly limitMs?: number;
  readonly maxLineBytes: number;
  /** Messages in the POST's own answer, as some servers send them. */
  onMessages(messages: Buffer[]): void;
  /** The answer is larger than a message may be. */
  onTooLong(detail: string): void;
}

/**
 * Posts one message. Any 2xx means that the server has it (2024-11-05 asks for no more); its answer comes on the stream,
 * or in the body of this answer as JSON or SSE. Never rejects.
 */
export async function postToSseServer(url: URL, message: Uint8Array, parts: SsePostOptions): Promise<SsePostOutcome> {
  const { connection, cut, limitMs } = parts;
  let hasExpired = false;
  const expire = (): void => {
    hasExpired = true;
    cut.abort();
  };
  const timer = limitMs === undefined ? undefined : setTimeout(expire, limitMs);
  try {
    const headers = { ...parts.headers, ...postHeaders };
    const answer = await connection.request({ method: 'POST', url, headers, body: message, signal: cut });
    return await takeAnswer(answer, parts);
  } catch (cause) {
    if (hasExpired)
      return { ok: false, reason: 'server_silent', detail: `A POST was not answered within ${limitMs} ms.` };
    return cut.aborted ? { ok: true } : broken(cause);
  } finally {
    clearTimeout(timer);
  }
}

const broken = (cause: unknown): SsePostFailure => ({
  ok: false,
  reason: 'server_unreachable',
  detail: `A POST failed (${connectErrorCode(cause)}).`,
});

async function takeAnswer({ status, mediaType, body }: HttpResponse, parts: SsePostOptions): Promise<SsePostOutcome> {
  if (status < 200 || status > 299) {
    await body.drain();
    return { ok: false, reason: reasonOfStatus(status), detail: `A POST was answered with status ${status}.` };
  }
  if (mediaType === 'text/event-stream') {
    const read = readStream(body, parts);
    if (parts.open.size > 0) return read; // else the next message need not wait for the end of this one's answer
  } else if (mediaType === 'application/json') {
    await takeJson(body, parts);
  } else {
    await body.drain(0); // who cut it off early could end the call
  }
  return { ok: true };
}

async function takeJson(
  body: HttpResponse['body'],
  { flow, maxLineBytes, onMessages, onTooLong }: SsePostOptions,
): Promise<void> {
  const text = await readJsonBody(body, flow, maxLineBytes);
  if (text === undefined) return onTooLong(`The server answered a POST with more than ${maxLineBytes} bytes.`);
  const flat = flattenLineBreaks(text);
  await readLarge([flat]);
  // Some servers answer `{"status":"ok"}`, which is no message of the protocol.
  if (messagesIn(flat).length > 0) onMessages([flat]);
}

/** Its end in order says nothing of the requests that it has not answered: their answers can still come on the backend's stream. */
async function readStream(body: HttpResponse['body'], parts: SsePostOptions): Promise<SsePostOutcome> {
  const { flow, maxLineBytes, open, onMessages, onTooLong } = parts;
  const reader = createEventReader({ maxEventBytes: maxLineBytes });
  const take = (events: readonly MessageEvent[]): void => {
    const found = events.filter(({ type }) => type === 'message');
    if (found.length > 0) onMessages(found.map(({ message }) => message));
    if (reader.overflow === undefined) return;
    onTooLong(reader.overflow);
    body.destroy();
  };
  // A notification needs no answer. Of a request, whoever posts it says for how long.
  const linger = open.size > 0 ? undefined : setTimeout(() => body.destroy(), lingerMs);
  try {
    await flow.read(body, (chunk) => readEvents(reader, chunk, take));
  } catch (cause) {
    if (open.size > 0) return broken(cause);
  } finally {
    clearTimeout(linger);
  }
  return { ok: true };
}
