import type { IncomingMessage, ServerResponse } from 'node:http';
import type { OriginRules } from '../auth/origin-rules.ts';

/** What a page gets to read beside the body: the session, what it is to do about a refusal, and when to try again. */
const readable = 'Mcp-Session-Id, WWW-Authenticate, Retry-After';

/** What the endpoints know; which of them an endpoint has, it says itself. */
const methods = 'GET, POST, DELETE';

/** A list of header names (RFC 9110, section 5.6). It is said again, so nothing else may be in it. */
const headerList = /^[!#$%&'*+.^_`|~0-9A-Za-z, \t-]*$/;

/** Browsers keep an answer no longer than 2 h (Chromium) or 24 h. */
const maxAgeS = 2 * 60 * 60;

/**
 * Answers a browser's preflight, or marks the response to come as one that the page may read. True if the request is answered.
 * @param incoming a request with an `Origin`
 */
export type Cors = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

/**
 * Lets web pages of allowed origins use the gateway (WHATWG Fetch, section 3.3), whatever it answers: a page that could not
 * read a refusal would take it for a broken network. A preflight has no credentials and asks nothing of a server, so it is
 * answered before anybody has to say who he is. For other origins nothing is said, and the guards refuse the request.
 *
 * There is no `Access-Control-Allow-Credentials`: what a browser adds by itself (cookies, certificates) never speaks for
 * another site's page, which sends its token as a header (docs/decisions/0034).
 */
export function createCors(rules: OriginRules): Cors {
  return ({ method, headers }, outgoing) => {
    const { origin } = headers;
    outgoing.setHeader('vary', 'Origin');
    if (origin === undefined || !rules.allowsOrigin(origin) || !rules.allowsHost(headers.host)) return false;
    outgoing.setHeader('access-control-allow-origin', origin);
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) {
      outgoing.setHeader('access-control-expose-headers', readable);
      return false;
    }
    const asked = String(headers['access-control-request-headers'] ?? '');
    // Which headers a client sends, no list knows: mirrored parameters are named by servers, others by their operators.
    if (asked !== '' && headerList.test(asked)) outgoing.setHeader('access-control-allow-headers', asked);
    outgoing.setHeader('vary', 'Origin, Access-Control-Request-Headers');
    outgoing.setHeader('access-control-allow-methods', methods);
    outgoing.setHeader('access-control-max-age', String(maxAgeS));
    outgoing.writeHead(204, { 'x-content-type-options': 'nosniff' }).end();
    return true;
  };
}
