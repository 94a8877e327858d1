// src/features/remote/http-client: the HTTP client for servers: connections, bodies, event streams, and the order of POSTs.
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { unknownEncoding } from '../../../core/backend/connect-failure.ts';
import type { CookieJar } from '../../../core/backend/cookie-jar.ts';
import type { UpstreamTls } from '../../../core/backend/upstream-tls.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { noteChallenge, readChallenge } from '../../../core/protocol/http/upstream-challenge.ts';
import { detach } from '../../../core/util/boundary.ts';
import { loadLibrary } from '../../../core/util/load-library.ts';
import type { Canceller } from './canceller.ts';

import { DecodedBody, isReadable, ResponseBody } from './response-body.ts';

/** The head of a response and its body, not yet read. */
export interface HttpResponse {
  readonly status: number;
  /** For example `text/event-stream`: in lower case and without parameters; empty where there is none. */
  readonly mediaType: string;
  readonly headers: IncomingHttpHeaders;
  /** Not compressed, whatever the server did. */
  readonly body: ResponseBody;
  /** The URL of the request, after redirects. */
  readonly url: URL;
}

/**
 * The HTTP connections of one backend to one origin. Bytes of other sessions never pass through them, and nothing goes
 * to another origin.
 */
export interface HttpConnection {
  /**
   * Rejects if no head of a response comes. Only a redirect that keeps the method and the origin (307, 308) is followed.
   * Any other one is a response like any other. A POST that the server refuses with 429 or 503 is sent again after the
   * time of `Retry-After`, if that is short. `retryAfterOf` reads a longer time.
   */
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

/** A request is redirected at most this often. A longer way is a loop. */
const maxRedirects = 5;

/** A POST waits this long for a server that names a time, and so often. Clients of longer times get the refusal. */
const maxRetryAfterMs = 5_000;
const maxRefusals = 3;

/** A server that names no time to wait gets this one, so that it is not asked in a loop. */
const minRetryAfterMs = 100;

/** A client is told no longer time than this. */
const maxToldRetryAfterMs = 24 * 3_600_000;

/** Node.js allows 16 KiB, which long session ids, cookies and the headers of proxies can exceed (P8). */
const maxHeadBytes = 64 * 1024;

/** True for a status by which a server accepts a message. */
export const isAccepted = (status: number): boolean => status >= 200 && status <= 299;

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
  cookies,
}: {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: UpstreamTls;
  readonly connectTimeoutMs: number;
  readonly maxConnections: number;
  readonly passesChallenges?: boolean | undefined;
  /** Keeps the cookies that the server sets. Without it they are ignored. */
  readonly cookies?: CookieJar | undefined;
}): HttpConnection {
  // Compression costs time, and is of no use over a short distance.
  const common = { ...configured, 'accept-encoding': 'identity' };
  const pool = new (loadLibrary('undici').Pool)(origin, {
    connect: { timeout: connectTimeoutMs, ...tls },
    connections: maxConnections,
    pipelining: 1,
    maxHeaderSize: maxHeadBytes,
    // The caller has a time limit of its own that fits the request.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  let closed: Promise<void> | undefined;
  return {
    request({ method, url: firstUrl, headers: own, body = null, signal }) {
      const headers = { ...common, ...own };
      return new Promise((resolve, reject) => {
        const send = (url: URL, redirects: number, refusals: number): void => {
          if (signal.aborted) return reject(createAbortError());
          const onHead = (response: HttpResponse): void => {
            cookies?.take(response.headers, url);
            const mayRepeat = method === 'POST' && refusals < maxRefusals;
            const retryAfterMs = mayRepeat ? readRetryAfter(response) : undefined;
            if (retryAfterMs !== undefined && retryAfterMs <= maxRetryAfterMs) {
              detach('backend', response.body.drain());
              setTimeout(() => send(url, redirects, refusals + 1), Math.max(retryAfterMs, minRetryAfterMs)).unref();
              return;
            }
            const target = redirects < maxRedirects ? redirectTarget(response) : undefined;
            if (target === undefined) return resolve(response);
            detach('backend', response.body.drain());
            send(target, redirects + 1, refusals);
          };
          const path = url.pathname + url.search;
          const allHeaders = cookies === undefined ? headers : cookies.addTo(headers, url);
          const handler = new ResponseHandler({ url, signal, resolve: onHead, reject });
          pool.dispatch({ path, method, headers: allHeaders, body }, handler);
        };
        send(firstUrl, 0, 0);
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

/**
 * How long to wait before a refused request is sent again, in milliseconds (RFC 9110, section 10.2.3). Undefined if the
 * server names no time. It has not run what it refuses with 429 or 503.
 */
function readRetryAfter({ status, headers }: Pick<HttpResponse, 'status' | 'headers'>): number | undefined {
  const value = headers['retry-after'];
  if ((status !== 429 && status !== 503) || value === undefined) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), maxToldRetryAfterMs);
}

/** The same in seconds, for the client of a request whose server was not asked again, or refuses it each time. */
export function retryAfterOf(response: Pick<HttpResponse, 'status' | 'headers'>): number | undefined {
  const ms = readRetryAfter(response);
  return ms === undefined ? undefined : Math.max(1, Math.ceil(ms / 1_000));
}

/** Returns where a request must go instead, if the method, the body and the origin stay the same. */
function redirectTarget({ status, headers: { location }, url }: HttpResponse): URL | undefined {
  if ((status !== 307 && status !== 308) || location === undefined || !URL.canParse(location, url.href))
    return undefined;
  const target = new URL(location, url.href);
  target.hash = '';
  return target.origin === url.origin && target.username === '' && target.password === '' ? target : undefined;
}

/** The content coding of a body; empty if it is not compressed. */
function readEncoding({ 'content-encoding': encoding }: IncomingHttpHeaders): string {
  const name = (encoding ?? '').trim().toLowerCase();
  return name === 'identity' ? '' : name;
}

const readMediaType = ({ 'content-type': type }: IncomingHttpHeaders): string =>
  (type?.split(';')[0] ?? '').trim().toLowerCase();

/** Callbacks for the outcome of a request. */
interface RequestCallbacks {
  readonly url: URL;
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
  #body: ResponseBody | DecodedBody | undefined;

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
    const encoding = readEncoding(headers);
    const source = { resume, abort: (cause: Error) => this.#abortRequest(cause) };
    const { url } = this.#callbacks;
    if (isReadable(encoding)) {
      const decoded = new DecodedBody(encoding, source);
      this.#body = decoded;
      this.#callbacks.resolve({ status, mediaType: readMediaType(headers), headers, body: decoded.body, url });
    } else if (encoding !== '' && status < 300) {
      this.#abortRequest(Object.assign(new Error('The body has an unknown encoding.'), { code: unknownEncoding }));
    } else {
      this.#body = new ResponseBody(source);
      const mediaType = encoding === '' ? readMediaType(headers) : '';
      this.#callbacks.resolve({ status, mediaType, headers, body: this.#body, url });
    }
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
