import type { IncomingMessage } from 'node:http';
import { isHost, type OriginRules } from '../../auth/origin-rules.ts';
import type { Reason } from '../../protocol/faults.ts';
import { credentialHeaders } from '../../protocol/http/client-credentials.ts';
import { type ForwardedHeaders, readForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Server } from '../../server/server.ts';

/** Options of the guard before every endpoint of a server. */
export interface RequestGuardOptions {
  readonly server: Server;
  readonly originRules: OriginRules;
  /** Further headers, in lower case, that may occur only once: those in which a proxy names its user. */
  readonly identityHeaders?: readonly string[];
}

/**
 * Checks the headers of a request. Returns the reason to refuse the request, or the headers to forward to the server.
 */
export type RequestGuard = (
  head: Pick<IncomingMessage, 'headers' | 'rawHeaders'> & Partial<Pick<IncomingMessage, 'httpVersionMinor'>>,
) => ForwardedHeaders | Reason;

/** Creates the guard of a server's endpoints. */
export function createRequestGuard({ server, originRules, identityHeaders = [] }: RequestGuardOptions): RequestGuard {
  const { forwardHeaders = [], credentials, affinity, memberNeeds = [], shownHeaders = [] } = server;
  const forServer = [{ forwardHeaders, credentials }, ...memberNeeds].flatMap((needs) => [
    ...needs.forwardHeaders,
    ...(needs.credentials ? credentialHeaders(needs.credentials) : []),
  ]);
  const single = new Set([...forServer, ...shownHeaders, ...identityHeaders, ...(affinity?.headers ?? [])]);
  // Nearly all requests name the same host, so the last allowed one is kept.
  let allowedHost: string | undefined;
  return ({ headers, rawHeaders, httpVersionMinor }) => {
    // A proxy of HTTP/1.0 does not know chunks, and could take the body for the next request (RFC 9112, section 6.1).
    if (httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined) return 'bad_http';
    if (!hasSingleHeaders(rawHeaders, single)) return 'duplicate_header';
    if (headers.host === undefined || headers.host !== allowedHost) {
      if (!isHost(headers.host)) return 'bad_host';
      if (!originRules.allowsHost(headers.host)) return 'host_not_allowed';
      allowedHost = headers.host;
    }
    if (!originRules.allowsOrigin(headers.origin)) return 'origin_not_allowed';
    const forwarded = readForwardedHeaders(headers, forwardHeaders);
    return forwarded === 'too_large' ? 'forwarded_too_large' : forwarded;
  };
}

/** May hold any characters: an id of another form is unknown here, and gets the 404 of any unknown session. */
const sessionHeader = 'mcp-session-id';

/**
 * Headers that decide the sender of a request and its destination. Node.js keeps the first of two `Host` or
 * `Authorization` headers and joins two of the others with a comma. A proxy in front may use a different one than the
 * gateway. So a request with a duplicate is refused.
 */
const names = [
  'host',
  'origin',
  'authorization',
  'content-type',
  'content-encoding',
  sessionHeader,
  'mcp-protocol-version',
  'last-event-id',
];
/** Each header has one bit, so that the usual request needs no set of its headers. */
const bits: ReadonlyMap<string, number> = new Map(names.map((name, index) => [name, 1 << index]));

/**
 * Prefix of the protocol's other headers: `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` of the modern era, by which
 * proxies route. They may hold other characters, since the specification has its own answer to those (2026-07-28,
 * "Server Validation").
 */
const protocolPrefix = 'mcp-';

const visibleAscii = /^[\x20-\x7e]*$/;

const none: ReadonlySet<string> = new Set();

/**
 * True if no such header occurs twice, and no deciding header but the session id holds characters beyond visible ASCII.
 * @param rawHeaders the headers as Node.js gives them
 * @param further more headers, in lower case, under the same rule: of two the server could use a different one than a
 *   proxy before it
 */
function hasSingleHeaders(rawHeaders: readonly string[], further: ReadonlySet<string> = none): boolean {
  let seen = 0;
  let others: Set<string> | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase();
    const bit = bits.get(name) ?? 0;
    const isDeciding = bit !== 0 || further.has(name);
    if (!isDeciding && !name.startsWith(protocolPrefix)) continue;
    if (isDeciding && name !== sessionHeader && !visibleAscii.test(rawHeaders[i + 1] as string)) return false;
    if ((seen & bit) !== 0 || others?.has(name)) return false;
    seen |= bit;
    if (bit !== 0) continue;
    others ??= new Set();
    others.add(name);
  }
  return true;
}
