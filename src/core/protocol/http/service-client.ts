import type { Agent } from 'undici';
import { loadLibrary } from '../../util/load-library.ts';
import { errorCodeOf } from '../../util/text/error-code.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';

/** What a service outside of the gateway may take of it (P8). */
export interface ServiceLimits {
  /** The time for one answer, from the connection to the last byte. */
  readonly timeoutMs: number;
  /** The longest answer. */
  readonly maxBytes: number;
  /** Connections at once, which are kept alive. Further requests wait, within their time. */
  readonly maxConnections: number;
}

/** Why a service gave no answer. The text says what it did, and is for the operator. */
export class NoServiceAnswer extends Error {
  readonly why: 'redirect' | 'slow' | 'too_large';

  constructor(why: NoServiceAnswer['why'], text: string) {
    super(text);
    this.why = why;
  }
}

/** A request to a service. */
export interface ServiceRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Record<string, string>;
  readonly body?: string | Buffer | undefined;
  /** The request changes nothing, so it may be sent again when a kept connection was closed just now. */
  readonly isRepeatable?: boolean;
}

/** A whole answer. An error that is too long has no body. */
export interface ServiceAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: Buffer;
}

/**
 * Asks a service over HTTP. A redirect is not followed: it could lead anywhere, and would take the gateway's secrets there.
 * Rejects with `NoServiceAnswer`, or with the error of the connection.
 */
export type AskService = (url: string, request: ServiceRequest) => Promise<ServiceAnswer>;

/** Creates the requests to services of one kind. Nothing is loaded or connected before the first one. */
export function createServiceClient({ timeoutMs, maxBytes, maxConnections }: ServiceLimits): AskService {
  let agent: Agent | undefined;
  return async (url, { method, headers, body = null, isRepeatable = false }) => {
    const undici = loadLibrary('undici');
    agent ??= new undici.Agent({ connections: maxConnections, connect: { timeout: timeoutMs } });
    const dispatcher = agent;
    const controller = new AbortController();
    const { signal } = controller;
    const limit = new TimeLimit(() => controller.abort(), timeoutMs);
    try {
      const send = () => undici.request(url, { method, headers, body, signal, dispatcher });
      const answer = await send().catch((cause: unknown) => {
        if (!isRepeatable || signal.aborted || !isClosed(cause)) throw cause;
        return send();
      });
      const { statusCode: status } = answer;
      const type = String(answer.headers['content-type'] ?? '');
      if (status >= 300 && status < 400) {
        answer.body.on('error', () => undefined).destroy();
        throw new NoServiceAnswer(
          'redirect',
          `answered with a redirect (${status}), which the gateway does not follow`,
        );
      }
      const read = await readBounded(answer.body, maxBytes);
      if (read !== undefined) return { status, type, body: read };
      if (status >= 400) return { status, type, body: Buffer.alloc(0) };
      throw new NoServiceAnswer('too_large', `answered with more than ${maxBytes} bytes`);
    } catch (cause) {
      if (signal.aborted) throw new NoServiceAnswer('slow', `did not answer completely within ${timeoutMs} ms`);
      throw cause;
    } finally {
      limit.clear();
    }
  };
}

/** True if a connection was closed under a request. */
const isClosed = (cause: unknown): boolean => ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'].includes(errorCodeOf(cause));

/** The whole body; undefined if it is longer. */
async function readBounded(body: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    // To leave the loop cancels the rest of the body.
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
