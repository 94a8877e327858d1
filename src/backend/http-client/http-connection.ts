import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { UpstreamTls } from '../upstream-tls.ts';
import type { Canceller } from './canceller.ts';
import { loadUndici } from './load-undici.ts';
import { ResponseBody } from './response-body.ts';

/** The head of an answer and its body, not yet read. */
export interface HttpResponse {
  readonly status: number;
  /** `text/event-stream`, in small letters and without parameters; empty where there is none. */
  readonly mediaType: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: ResponseBody;
}

/**
 * The HTTP connections of one backend to one origin, and of nobody else: no other session's bytes ever pass through them, and
 * nothing goes to another origin.
 */
export interface HttpConnection {
  /** Rejects if no head of an answer comes. Redirects are answers like others: none is followed. */
  request(what: {
    readonly method: 'GET' | 'POST' | 'DELETE';
    /** Of the connections' origin. */
    readonly url: URL;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: Uint8Array;
    readonly signal: AbortSignal | Canceller;
  }): Promise<HttpResponse>;
  /** Cuts all connections. Never rejects. */
  close(): Promise<void>;
}

/** Of a POST with a message: each may be answered as JSON or as a stream. */
export const postHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/**
 * @param origin scheme, host and port
 * @param headers sent with every request
 * @param maxConnections further requests wait for one to be free
 */
export function openHttpConnection({
  origin,
  headers: configured,
  tls,
  connectTimeoutMs,
  maxConnections,
}: {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: UpstreamTls;
  readonly connectTimeoutMs: number;
  readonly maxConnections: number;
}): HttpConnection {
  // A compressed stream is not understood here, and is of no use between two neighbours.
  const common = { ...configured, 'accept-encoding': 'identity' };
  const pool = new (loadUndici().Pool)(origin, {
    connect: { timeout: connectTimeoutMs, ...tls },
    connections: maxConnections,
    pipelining: 1,
    // Whoever asks has a time limit of its own, which knows what it waits for.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  let closed: Promise<void> | undefined;
  return {
    request({ method, url, headers, body = null, signal }) {
      const path = url.pathname + url.search;
      const all = { ...common, ...headers };
      return new Promise((resolve, reject) => {
        if (signal.aborted) reject(aborted());
        else pool.dispatch({ path, method, headers: all, body }, new AnswerHandler({ signal, resolve, reject }));
      });
    },
    close() {
      closed ??= pool.destroy();
      return closed;
    },
  };
}

const aborted = (): Error => new (loadUndici().errors.RequestAbortedError)();

function mediaTypeOf({ 'content-type': type, 'content-encoding': encoding }: IncomingHttpHeaders): string {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return '';
  return (type?.split(';')[0] ?? '').trim().toLowerCase();
}

/** What becomes of a request. */
interface Settle {
  readonly signal: AbortSignal | Canceller;
  resolve(answer: HttpResponse): void;
  /** No head of an answer came. */
  reject(cause: Error): void;
}

/** Takes the answer to one request from its connection. */
class AnswerHandler implements Dispatcher.DispatchHandlers {
  readonly #settle: Settle;
  readonly #onAborted = (): void => this.#cut(aborted());
  #abort: ((cause: Error) => void) | undefined;
  #body: ResponseBody | undefined;

  constructor(settle: Settle) {
    this.#settle = settle;
    const { signal } = settle;
    if (signal instanceof AbortSignal) signal.addEventListener('abort', this.#onAborted);
    else signal.onAbort = this.#onAborted;
  }

  onConnect(abort: (cause: Error) => void): void {
    this.#abort = abort;
    if (this.#settle.signal.aborted) this.#onAborted();
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (status < 200) return true;
    const headers = loadUndici().util.parseHeaders(rawHeaders);
    this.#body = new ResponseBody({ resume, abort: (cause) => this.#cut(cause) });
    this.#settle.resolve({ status, mediaType: mediaTypeOf(headers), headers, body: this.#body });
    return true;
  }

  onData(chunk: Buffer): boolean {
    return this.#body?.take(chunk) ?? true;
  }

  onComplete(): void {
    this.#forget();
    this.#body?.end();
  }

  onError(cause: Error): void {
    this.#forget();
    if (this.#body === undefined) this.#settle.reject(cause);
    else this.#body.end(cause);
  }

  #cut(cause: Error): void {
    // One that waits for a connection is told at once, and gone when it would get one.
    if (this.#abort === undefined) this.#settle.reject(cause);
    else this.#abort(cause);
  }

  #forget(): void {
    const { signal } = this.#settle;
    if (signal instanceof AbortSignal) signal.removeEventListener('abort', this.#onAborted);
    else if (signal.onAbort === this.#onAborted) signal.onAbort = undefined;
  }
}
