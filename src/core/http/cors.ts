import type { IncomingHttpHeaders } from 'node:http';
import type { OriginRules } from '../auth/origin-rules.ts';
import type { Endpoint, HttpContext } from './http-context.ts';
import { sendHead } from './respond.ts';

/**
 * Headers that a page may read: the session, the advice about a refusal, the time of the next attempt, and the nonce for
 * the next proof.
 */
const readable = 'Mcp-Session-Id, WWW-Authenticate, Retry-After, DPoP-Nonce';

/** The methods of all endpoints; each endpoint refuses those that it lacks. */
const methods = 'GET, POST, DELETE';

/** A list of header names (RFC 9110, section 5.6). The response repeats it, so it must hold nothing else. */
const headerList = /^[!#$%&'*+.^_`|~0-9A-Za-z, \t-]*$/;

/** Browsers keep a preflight response no longer than 2 h (Chromium) or 24 h. */
const maxAgeS = 2 * 60 * 60;

/** The part of the answer to a page of another origin that decides whether the page may read it. */
export interface CorsAnswer {
  readonly headers: Readonly<Record<string, string>>;
  /** True if the request is a preflight that these headers answer completely. */
  readonly isPreflight: boolean;
}

/** Decides about a request that has an `Origin`. */
export type Cors = (method: string, headers: IncomingHttpHeaders) => CorsAnswer;

/**
 * Lets web pages of allowed origins use the gateway (WHATWG Fetch, section 3.3). This holds for every response: a page
 * that could not read a refusal would report a broken network. A preflight has no credentials and sends nothing to a
 * server, so it is answered before authentication. Other origins get no CORS headers, and the guards refuse the
 * request.
 *
 * There is no `Access-Control-Allow-Credentials`. Credentials that a browser adds by itself (cookies, certificates) are
 * never accepted for another site's page, which sends its token as a header (docs/decisions/0078).
 */
export function createCors(rules: OriginRules): Cors {
  return (method, headers) => {
    const { origin } = headers;
    if (origin === undefined || !rules.allowsOrigin(origin) || !rules.allowsHost(headers.host))
      return { headers: { vary: 'Origin' }, isPreflight: false };
    const allowed: Record<string, string> = { vary: 'Origin', 'access-control-allow-origin': origin };
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) {
      allowed['access-control-expose-headers'] = readable;
      return { headers: allowed, isPreflight: false };
    }
    const requestedHeaders = String(headers['access-control-request-headers'] ?? '');
    // The headers of clients cannot be listed: servers name mirrored parameters, and operators name others.
    if (requestedHeaders !== '' && headerList.test(requestedHeaders))
      allowed['access-control-allow-headers'] = requestedHeaders;
    allowed['vary'] = 'Origin, Access-Control-Request-Headers';
    allowed['access-control-allow-methods'] = methods;
    allowed['access-control-max-age'] = String(maxAgeS);
    return { headers: allowed, isPreflight: true };
  };
}

/** Creates an endpoint whose every response can be read by the pages that may read it. */
export const withCors =
  (cors: Cors, endpoint: Endpoint): Endpoint =>
  (context) => {
    if (context.headers.origin === undefined || !answerOrigin(cors, context)) endpoint(context);
  };

/** Answers a browser's preflight, or marks the later response as readable for the page. True if it is answered. */
function answerOrigin(cors: Cors, { method, headers, outgoing }: HttpContext): boolean {
  const answer = cors(method, headers);
  for (const [name, value] of Object.entries(answer.headers)) outgoing.setHeader(name, value);
  if (answer.isPreflight) sendHead(outgoing, 204).end();
  return answer.isPreflight;
}
