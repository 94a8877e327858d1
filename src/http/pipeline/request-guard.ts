import type { IncomingMessage } from 'node:http';
import { isHost, type OriginRules } from '../../auth/origin-rules.ts';
import type { Reason } from '../../protocol/faults.ts';
import { credentialHeaders } from '../../protocol/http/client-credentials.ts';
import { type ForwardedHeaders, readForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Server } from '../../server/server.ts';
import { hasSingleHeaders } from './single-headers.ts';

/** What stands before every endpoint of a server. */
export interface RequestGuardOptions {
  readonly server: Server;
  readonly originRules: OriginRules;
  /** Further headers, in small letters, that may stand once: those by which a proxy says who its user is. */
  readonly identityHeaders?: readonly string[];
}

/** Says why a request is refused by its headers, whatever it asks for; else which of them its server is to get. */
export type RequestGuard = (incoming: IncomingMessage) => ForwardedHeaders | Reason;

/** The guard of a server's endpoints. */
export function createRequestGuard({ server, originRules, identityHeaders = [] }: RequestGuardOptions): RequestGuard {
  const { forwardHeaders = [], credentials } = server;
  const forServer = [...forwardHeaders, ...(credentials ? credentialHeaders(credentials) : [])];
  const single = new Set([...forServer, ...identityHeaders]);
  // Nearly all requests name the same one.
  let allowedHost: string | undefined;
  return ({ headers, rawHeaders }) => {
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
