import type { Agent } from 'undici';
import { loadLibrary } from '../../core/util/load-library.ts';
import { timeLimitSignal } from '../../core/util/timing/time-limit.ts';

/** How long an authorization server may take for one answer, from the connection to the last byte. */
const timeoutMs = 10_000;
/** The longest answer. A token is far smaller, and a faulty server must not fill the memory (P8). */
const maxBytes = 64 * 1024;
/** Connections to the authorization servers of one MCP server. Further requests wait, within their time (P8). */
const maxConnections = 16;

/** Why an answer of an authorization server was not read. The text is for the operator. */
export class UnreadableAnswer extends Error {}

/** A request to an authorization server, as OAuth libraries make it. */
interface TokenRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: unknown;
}

/** Fetches the answers of an authorization server within limits. */
export type TokenFetch = (url: string, request: TokenRequest) => Promise<Response>;

/**
 * Creates the requests to the authorization server of one MCP server. The answer is complete when the promise resolves.
 * A redirect is not followed: it would take the gateway's secrets elsewhere. Rejects with `UnreadableAnswer`, or the
 * error of the connection.
 */
export function createTokenFetch(limitMs = timeoutMs): TokenFetch {
  let agent: Agent | undefined;
  return async (url, { method, headers, body }) => {
    const undici = loadLibrary('undici');
    agent ??= new undici.Agent({ connections: maxConnections, connect: { timeout: limitMs } });
    const signal = timeLimitSignal(limitMs);
    try {
      // Cheaper than `fetch`, and it follows no redirect.
      const answer = await undici.request(url, {
        method: method as 'GET' | 'POST',
        headers,
        body: body === undefined || body === null ? null : String(body),
        signal,
        dispatcher: agent,
      });
      const { statusCode: status } = answer;
      if (status >= 300 && status < 400) {
        answer.body.on('error', () => undefined).destroy();
        throw new UnreadableAnswer(`answered with a redirect (${status}), which the gateway does not follow`);
      }
      const bytes = await readBounded(answer.body);
      const type = String(answer.headers['content-type'] ?? '');
      return new Response(bytes, { status, headers: { 'content-type': type } });
    } catch (cause) {
      if (signal.aborted) throw new UnreadableAnswer(`did not answer completely within ${limitMs} ms`);
      throw cause;
    }
  };
}

async function readBounded(body: AsyncIterable<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    // The throw leaves the loop, which cancels the rest of the body.
    if (size > maxBytes) throw new UnreadableAnswer(`answered with more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
