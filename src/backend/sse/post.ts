import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/forwarded-headers.ts';
import { readBody } from '../../protocol/message.ts';
import { codeOf } from '../connect-failure.ts';
import type { Answer, Connection } from './connection.ts';
import { createEventReader } from './event-reader.ts';
import type { Flow } from './flow.ts';

/** What became of a message that was posted. */
export type Posted =
  | { readonly ok: true }
  /** Its requests get this error. The detail is one sentence for the operator, without contents. */
  | { readonly ok: false; readonly reason: Reason; readonly detail: string };

/** What posting needs of its backend. */
export interface PostParts {
  readonly connection: Connection;
  readonly flow: Flow;
  /** Of the client's request that brought the message. */
  readonly headers: ForwardedHeaders;
  /** How long the server may take for its answer to a POST, and for all of it unless that is a stream. */
  readonly postTimeoutMs: number;
  readonly maxLineBytes: number;
  /** Messages in the POST's own answer, as some servers send them. */
  onMessages(messages: Buffer[]): void;
  /** The answer is larger than a message may be. */
  onTooLong(detail: string): void;
  /** A stream that answers this POST broke after `post` had resolved, before it answered all requests. */
  onBroken(posted: Extract<Posted, { ok: false }>): void;
}

/** Of an answer that says nothing so much is read, to keep the connection; a longer one closes it. */
const maxIdleBytes = 64 * 1024;

/**
 * Posts one message. Any 2xx means that the server has it (2024-11-05 asks for no more); its answer comes on the stream,
 * or in the body of this answer as JSON or SSE. Never rejects.
 */
export async function post(url: URL, message: Uint8Array, parts: PostParts): Promise<Posted> {
  const { connection, postTimeoutMs } = parts;
  const controller = new AbortController();
  let hasExpired = false;
  const timer = setTimeout(() => {
    hasExpired = true;
    controller.abort();
  }, postTimeoutMs);
  try {
    const accept = 'application/json, text/event-stream';
    const headers = { ...parts.headers, 'content-type': 'application/json', accept };
    const answer = await connection.request({ method: 'POST', url, headers, body: message, signal: controller.signal });
    return await takeAnswer(answer, message, parts);
  } catch (cause) {
    if (hasExpired) {
      const detail = `A POST was not answered within ${postTimeoutMs} ms.`;
      return { ok: false, reason: 'server_silent', detail };
    }
    return broken(cause);
  } finally {
    clearTimeout(timer);
  }
}

const broken = (cause: unknown): Extract<Posted, { ok: false }> => ({
  ok: false,
  reason: 'server_unreachable',
  detail: `A POST failed (${codeOf(cause)}).`,
});

async function takeAnswer({ status, mediaType, body }: Answer, message: Uint8Array, parts: PostParts): Promise<Posted> {
  if (status < 200 || status > 299) {
    await body.dump({ limit: maxIdleBytes });
    return { ok: false, reason: 'server_refused', detail: `A POST was answered with status ${status}.` };
  }
  if (mediaType === 'text/event-stream') {
    void readEvents(body, message, parts); // the next message need not wait for the end of this one's answer
  } else if (mediaType === 'application/json') {
    await readJson(body, parts);
  } else {
    await body.dump({ limit: maxIdleBytes });
  }
  return { ok: true };
}

async function readJson(body: Answer['body'], { flow, maxLineBytes, onMessages, onTooLong }: PostParts): Promise<void> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  await flow
    .read(body, (chunk) => {
      bytes += chunk.length;
      if (bytes <= maxLineBytes) chunks.push(chunk);
      else body.destroy();
    })
    .catch((cause: unknown) => {
      if (bytes <= maxLineBytes) throw cause;
      onTooLong(`The server answered a POST with more than ${maxLineBytes} bytes.`);
    });
  const text = Buffer.concat(chunks);
  if (bytes <= maxLineBytes && isMessage(text)) onMessages([text]);
}

/** Some servers answer `{"status":"ok"}`, which is no message of the protocol. */
function isMessage(text: Buffer): boolean {
  const read = readBody(text, Number.POSITIVE_INFINITY);
  return read.ok && read.messages.some(({ ok }) => ok);
}

async function readEvents(
  body: Answer['body'],
  message: Uint8Array,
  { flow, maxLineBytes, onMessages, onTooLong, onBroken }: PostParts,
): Promise<void> {
  const reader = createEventReader({ maxEventBytes: maxLineBytes });
  const open = new Set(requestIds(message));
  try {
    await flow.read(body, (chunk) => {
      const found = reader.push(chunk).filter(({ type }) => type === 'message');
      const messages = found.map(({ data }) => Buffer.from(data.replaceAll('\n', ' ')));
      for (const text of messages) for (const id of responseIds(text)) open.delete(id);
      if (messages.length > 0) onMessages(messages);
      if (reader.overflow !== undefined) {
        onTooLong(reader.overflow);
        body.destroy();
      }
    });
  } catch (cause) {
    // Its end in order says nothing: the answer can still come on the backend's stream.
    if (open.size > 0) onBroken(broken(cause));
  }
}

/** The ids of the requests in a message or batch. */
export const requestIds = (message: Uint8Array) => idsOf(message, 'request');

const responseIds = (message: Uint8Array) => idsOf(message, 'response');

function idsOf(message: Uint8Array, kind: 'request' | 'response') {
  const text = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  const read = readBody(text, Number.POSITIVE_INFINITY);
  if (!read.ok) return [];
  return read.messages.flatMap((each) => {
    const id = each.ok && each.message.kind === kind ? each.message.id : undefined;
    return id === undefined || id === null ? [] : [id];
  });
}
