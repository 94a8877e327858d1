// src/backend/http-client: the HTTP client for servers: connections, bodies, event streams, and the order of POSTs.
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { noteChallenge, readChallenge } from '../../protocol/http/upstream-challenge.ts';
import { loadLibrary } from '../../util/load-library.ts';
import type { UpstreamTls } from '../upstream-tls.ts';
import type { Canceller } from './canceller.ts';
import { ResponseBody } from './response-body.ts';

/** The head of a response and its body, not yet read. */
export interface HttpResponse {
  readonly status: number;
  /** For example `text/event-stream`: in lower case and without parameters; empty where there is none. */
  readonly mediaType: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: ResponseBody;
}

/**
 * The HTTP connections of one backend to one origin. Bytes of other sessions never pass through them, and nothing goes
 * to another origin.
 */
export interface HttpConnection {
  /** Rejects if no head of a response comes. A redirect is a response like any other: it is not followed. */
  request(options: {
    readonly method: 'GET' | 'POST' | 'DELETE';
    /** A URL on the origin of the connections. */
    readonly url: URL;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: Uint8Array;
    readonly signal: AbortSignal | Canceller;
  }): Promise<HttpResponse>;
  /**
   * Remembers the challenge in a response for the client's request with these headers, if clients authorize at the
   * server themselves. Returns false if the response is no challenge, or none for clients.
   */
  noteChallenge(response: Pick<HttpResponse, 'status' | 'headers'>, forwarded: ForwardedHeaders): boolean;
  /** Closes all connections at once. Never rejects. */
  close(): Promise<void>;
}

/** Headers of a POST with a message: the response may be JSON or a stream. */
export const postHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/**
 * Creates the connections of one backend, opened on demand.
 * @param origin scheme, host and port
 * @param headers sent with every request
 * @param maxConnections further requests wait for a free connection
 * @param passesChallenges true if clients authorize at the server themselves
 */
export function openHttpConnection({
  origin,
  headers: configured,
  tls,
  connectTimeoutMs,
  maxConnections,
  passesChallenges = false,
}: {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: UpstreamTls;
  readonly connectTimeoutMs: number;
  readonly maxConnections: number;
  readonly passesChallenges?: boolean | undefined;
}): HttpConnection {
  // The gateway cannot read compressed streams, and they are of no use over a short distance.
  const common = { ...configured, 'accept-encoding': 'identity' };
  const pool = new (loadLibrary('undici').Pool)(origin, {
    connect: { timeout: connectTimeoutMs, ...tls },
    connections: maxConnections,
    pipelining: 1,
    // The caller has a time limit of its own that fits the request.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  let closed: Promise<void> | undefined;
  return {
    request({ method, url, headers, body = null, signal }) {
      const path = url.pathname + url.search;
      const allHeaders = { ...common, ...headers };
      return new Promise((resolve, reject) => {
        if (signal.aborted) reject(createAbortError());
        else
          pool.dispatch({ path, method, headers: allHeaders, body }, new ResponseHandler({ signal, resolve, reject }));
      });
    },
    noteChallenge({ status, headers }, forwarded) {
      const challenge = passesChallenges ? readChallenge(status, headers) : undefined;
      if (challenge !== undefined) noteChallenge(forwarded, challenge);
      return challenge !== undefined;
    },
    close() {
      closed ??= pool.destroy();
      return closed;
    },
  };
}

const createAbortError = (): Error => new (loadLibrary('undici').errors.RequestAbortedError)();

function readMediaType({ 'content-type': type, 'content-encoding': encoding }: IncomingHttpHeaders): string {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return '';
  return (type?.split(';')[0] ?? '').trim().toLowerCase();
}

/** Callbacks for the outcome of a request. */
interface RequestCallbacks {
  readonly signal: AbortSignal | Canceller;
  resolve(answer: HttpResponse): void;
  /** No head of a response came. */
  reject(cause: Error): void;
}

/** Receives the response to one request from its connection. */
class ResponseHandler implements Dispatcher.DispatchHandlers {
  readonly #callbacks: RequestCallbacks;
  readonly #onAborted = (): void => this.#abortRequest(createAbortError());
  #abort: ((cause: Error) => void) | undefined;
  #body: ResponseBody | undefined;

  constructor(callbacks: RequestCallbacks) {
    this.#callbacks = callbacks;
    const { signal } = callbacks;
    if (signal instanceof AbortSignal) signal.addEventListener('abort', this.#onAborted);
    else signal.onAbort = this.#onAborted;
  }

  onConnect(abort: (cause: Error) => void): void {
    this.#abort = abort;
    if (this.#callbacks.signal.aborted) this.#onAborted();
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (status < 200) return true;
    const headers = loadLibrary('undici').util.parseHeaders(rawHeaders);
    this.#body = new ResponseBody({ resume, abort: (cause) => this.#abortRequest(cause) });
    this.#callbacks.resolve({ status, mediaType: readMediaType(headers), headers, body: this.#body });
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
    if (this.#body === undefined) this.#callbacks.reject(cause);
    else this.#body.end(cause);
  }

  #abortRequest(cause: Error): void {
    // A request that still waits for a connection is rejected at once, and aborted when it would get one.
    if (this.#abort === undefined) this.#callbacks.reject(cause);
    else this.#abort(cause);
  }

  #forget(): void {
    const { signal } = this.#callbacks;
    if (signal instanceof AbortSignal) signal.removeEventListener('abort', this.#onAborted);
    else if (signal.onAbort === this.#onAborted) signal.onAbort = undefined;
  }
}
