// src/core/auth: finds out who sends a request and what the sender may do: API keys, OAuth, proxies, scopes, origins.
import type { IncomingMessage } from 'node:http';
import { entryOf, type Reason } from '../protocol/faults.ts';
import { type BearerToken, readToken } from './bearer-token.ts';
import { challengeHeader, proofAlgorithms } from './challenges.ts';
import { type Authenticate, type Challenge, type Identity, isChallenge, type RefusalDetail } from './identity.ts';
import { isRefusalCause, refusalCauses } from './refusal-causes.ts';

/**
 * Checks one kind of credentials. Returns the identity, or a challenge if the credentials are not valid. Returns
 * undefined for a request without credentials of this kind. Like `Authenticate`, it answers at once if it can, and
 * never rejects.
 * @param token the token in `Authorization: Bearer` or `DPoP`; undefined without that header or with another scheme
 */
export type Authenticator = (
  incoming: IncomingMessage,
  token: BearerToken | undefined,
) => Identity | Challenge | Promise<Identity | Challenge> | undefined;

/** The accepted kinds of credentials, and the contents of challenges. */
export interface AuthenticateOptions {
  /** The first authenticator that recognises its kind of credentials decides. */
  readonly authenticators: readonly Authenticator[];
  /** Returns the parameters of `WWW-Authenticate` beside the error, such as `resource_metadata="…"`. */
  readonly parametersFor?: (incoming: IncomingMessage) => readonly string[];
  /** True if access tokens without a DPoP proof are refused, so that each challenge is for that scheme. */
  readonly requiresProof?: boolean;
}

/**
 * Makes authentication by several kinds of credentials. A request without recognised credentials gets 401, and each 401
 * says in `WWW-Authenticate` how to authenticate (RFC 6750, section 3). A token in the URL is always refused, since
 * logs on the way contain it (2025-11-25, basic/authorization, "Token Requirements").
 */
export function createAuthenticate({
  authenticators,
  parametersFor,
  requiresProof = false,
}: AuthenticateOptions): Authenticate {
  const refuse = (
    reason: Reason,
    incoming: IncomingMessage,
    error?: string,
    detail?: RefusalDetail,
    needsProof = requiresProof,
  ): Challenge => {
    const description = detail && isRefusalCause(detail.why) ? refusalCauses[detail.why] : undefined;
    const described = description === undefined ? [] : [`error_description="${description}"`];
    const algorithms = needsProof ? [`algs="${proofAlgorithms.join(' ')}"`] : [];
    const parameters = [...described, ...algorithms, ...(parametersFor?.(incoming) ?? [])];
    const wwwAuthenticate = challengeHeader(error, parameters, needsProof ? 'DPoP' : 'Bearer');
    if (error === undefined) return { reason, wwwAuthenticate };
    const data = { error, ...(description && { error_description: description }) };
    return { reason, wwwAuthenticate, data, ...(detail && { detail }) };
  };

  /** Adds the header that all 401 have in common, so that authenticators need not. */
  const complete = (outcome: Identity | Challenge, incoming: IncomingMessage): Identity | Challenge => {
    if (!isChallenge(outcome) || outcome.wwwAuthenticate !== undefined) return outcome;
    if (entryOf(outcome.reason).status !== 401) return outcome;
    const { reason, detail, dpopError } = outcome;
    return refuse(reason, incoming, dpopError ?? 'invalid_token', detail, requiresProof || dpopError !== undefined);
  };

  return (incoming) => {
    if (hasTokenInQuery(incoming.url ?? '')) return refuse('credentials_in_query', incoming, 'invalid_request');
    const { authorization } = incoming.headers;
    const token = readToken(incoming);
    for (const authenticator of authenticators) {
      const outcome = authenticator(incoming, token);
      if (outcome === undefined) continue;
      return outcome instanceof Promise
        ? outcome.then((resolved) => complete(resolved, incoming))
        : complete(outcome, incoming);
    }
    if (authorization === undefined) return refuse('credentials_required', incoming);
    return refuse('credentials_invalid', incoming, 'invalid_token', token?.scheme === 'Bearer' ? unknownKey : noBearer);
  };
}

const noBearer: RefusalDetail = { why: 'no_bearer' };
const unknownKey: RefusalDetail = { why: 'unknown_key' };

/** True for a token in the URL (RFC 6750, section 2.3). */
function hasTokenInQuery(url: string): boolean {
  const query = url.indexOf('?');
  return query >= 0 && new URLSearchParams(url.slice(query)).has('access_token');
}
