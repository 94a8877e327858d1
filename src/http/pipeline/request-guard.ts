import type { IncomingMessage } from 'node:http';
import { isHost, type OriginRules } from '../../auth/origin-rules.ts';
import type { Reason } from '../../protocol/faults.ts';
import { credentialHeaders } from '../../protocol/http/client-credentials.ts';
import { type ForwardedHeaders, readForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Server } from '../../server/server.ts';
import { hasSingleHeaders } from './single-headers.ts';

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
  const { forwardHeaders = [], credentials, affinity } = server;
  const forServer = [...forwardHeaders, ...(credentials ? credentialHeaders(credentials) : [])];
  const single = new Set([...forServer, ...identityHeaders, ...(affinity?.headers ?? [])]);
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
