import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { Pool } from 'undici';
import type { UpstreamTls } from '../upstream-tls.ts';
import type { Cut } from './cut.ts';

/** The head of an answer and its body, not yet read. */
export interface Answer {
  readonly status: number;
  /** `text/event-stream`, in small letters and without parameters; empty where there is none. */
  readonly mediaType: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable & { dump(options: { limit: number }): Promise<void> };
}

/**
 * The HTTP connections of one backend to one origin, and of nobody else: no other session's bytes ever pass through them, and
 * nothing goes to another origin.
 */
export interface Connection {
  /** Rejects if no head of an answer comes. Redirects are answers like others: none is followed. */
  request(what: {
    readonly method: 'GET' | 'POST' | 'DELETE';
    /** Of the connections' origin. */
    readonly url: URL;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: Uint8Array;
    readonly signal: AbortSignal | Cut;
  }): Promise<Answer>;
  /** Cuts all connections. Never rejects. */
  close(): Promise<void>;
}

/** Of a POST with a message: each may be answered as JSON or as a stream. */
export const postHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Of an answer that says nothing so much is read, to keep the connection; a longer one closes it. */
export const maxIdleBytes = 64 * 1024;

/**
 * @param origin scheme, host and port
 * @param headers sent with every request
 * @param maxConnections further requests wait for one to be free
 */
export function openConnection({
  origin,
  headers: common,
  tls,
  connectTimeoutMs,
  maxConnections,
}: {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: UpstreamTls;
  readonly connectTimeoutMs: number;
  readonly maxConnections: number;
}): Connection {
  const pool = new Pool(origin, {
    connect: { timeout: connectTimeoutMs, ...tls },
    connections: maxConnections,
    pipelining: 1,
    // Whoever asks has a time limit of its own, which knows what it waits for.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  let closed: Promise<void> | undefined;
  return {
    async request({ method, url, headers, body, signal }) {
      const answer = await pool.request({
        path: url.pathname + url.search,
        method,
        // A compressed stream is not understood here, and is of no use between two neighbours.
        headers: { ...common, 'accept-encoding': 'identity', ...headers },
        body: body ?? null,
        signal,
      });
      // An abort breaks the body, also when nobody reads it any more; that is no fault of the program.
      answer.body.on('error', () => undefined);
      const { statusCode: status, headers: itsHeaders } = answer;
      return { status, mediaType: mediaTypeOf(itsHeaders), headers: itsHeaders, body: answer.body };
    },
    close() {
      closed ??= pool.destroy();
      return closed;
    },
  };
}

function mediaTypeOf({ 'content-type': type, 'content-encoding': encoding }: IncomingHttpHeaders): string {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return '';
  return (type?.split(';')[0] ?? '').trim().toLowerCase();
}
