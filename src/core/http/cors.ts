import type { OriginRules } from '../auth/origin-rules.ts';
import type { Endpoint } from './http-context.ts';
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

/**
 * Creates an endpoint that web pages of allowed origins may use (WHATWG Fetch, section 3.3). This holds for every
 * response: a page that could not read a refusal would report a broken network. A preflight has no credentials and sends
 * nothing to a server, so it is answered before authentication. Other origins get no CORS headers, and the guards refuse
 * the request.
 *
 * There is no `Access-Control-Allow-Credentials`. Credentials that a browser adds by itself (cookies, certificates) are
 * never accepted for another site's page, which sends its token as a header (docs/decisions/0078).
 */
export const withCors =
  (rules: OriginRules, endpoint: Endpoint): Endpoint =>
  (context) => {
    const { method, headers, outgoing } = context;
    const { origin } = headers;
    if (origin === undefined) return endpoint(context);
    const isAllowed = rules.allowsOrigin(origin) && rules.allowsHost(headers.host);
    const isPreflight = isAllowed && method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
    outgoing.setHeader('vary', isPreflight ? 'Origin, Access-Control-Request-Headers' : 'Origin');
    if (isAllowed) outgoing.setHeader('access-control-allow-origin', origin);
    if (isAllowed && !isPreflight) outgoing.setHeader('access-control-expose-headers', readable);
    if (!isPreflight) return endpoint(context);
    const requested = String(headers['access-control-request-headers'] ?? '');
    // The headers of clients cannot be listed: servers name mirrored parameters, and operators name others.
    if (requested !== '' && headerList.test(requested)) outgoing.setHeader('access-control-allow-headers', requested);
    outgoing.setHeader('access-control-allow-methods', methods);
    outgoing.setHeader('access-control-max-age', maxAgeS);
    sendHead(outgoing, 204).end();
  };
