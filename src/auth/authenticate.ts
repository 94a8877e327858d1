import type { IncomingMessage } from 'node:http';
import { entryOf, type Reason } from '../protocol/faults.ts';
import { type BearerToken, readBearerToken } from './bearer-token.ts';
import { challengeHeader } from './challenge-header.ts';
import { type Authenticate, type Challenge, type Identity, isChallenge, type RefusalDetail } from './identity.ts';

/**
 * One kind of credentials: who shows them, or why they are not good; undefined for a request that has none of this kind. As
 * `Authenticate`, it answers at once where it can and never rejects.
 * @param token what `Authorization: Bearer` has; undefined for nothing, and for another scheme
 */
export type Authenticator = (
  incoming: IncomingMessage,
  token: BearerToken | undefined,
) => Identity | Challenge | Promise<Identity | Challenge> | undefined;

/** What is needed to find out who sends a request. */
export interface AuthenticateOptions {
  /** The first that recognises its kind decides. */
  readonly authenticators: readonly Authenticator[];
  /** What `WWW-Authenticate` says to a request beside the error, such as `resource_metadata="…"`. */
  readonly parametersFor?: (incoming: IncomingMessage) => readonly string[];
}

/**
 * Authentication by several kinds of credentials. Who shows none, or none that anybody recognises, gets 401, and each 401
 * says in `WWW-Authenticate` how to do better (RFC 6750, section 3). A token in the URL is refused whatever else the request
 * has: it stands in logs on the way (2025-11-25, basic/authorization, "Token Requirements").
 */
export function createAuthenticate({ authenticators, parametersFor }: AuthenticateOptions): Authenticate {
  const refusal = (reason: Reason, incoming: IncomingMessage, error?: string, because?: RefusalDetail): Challenge => {
    const { description } = because ?? {};
    const described = description === undefined ? [] : [`error_description="${description}"`];
    const wwwAuthenticate = challengeHeader(error, [...described, ...(parametersFor?.(incoming) ?? [])]);
    return because === undefined ? { reason, wwwAuthenticate } : { reason, wwwAuthenticate, detail: because };
  };

  /** Authenticators need not say what all 401 have in common. */
  const complete = (outcome: Identity | Challenge, incoming: IncomingMessage): Identity | Challenge => {
    if (!isChallenge(outcome) || outcome.wwwAuthenticate !== undefined) return outcome;
    return entryOf(outcome.reason).status === 401
      ? refusal(outcome.reason, incoming, 'invalid_token', outcome.detail)
      : outcome;
  };

  return (incoming) => {
    if (hasTokenInQuery(incoming.url ?? '')) return refusal('credentials_in_query', incoming, 'invalid_request');
    const { authorization } = incoming.headers;
    const token = readBearerToken(incoming);
    for (const authenticator of authenticators) {
      const outcome = authenticator(incoming, token);
      if (outcome === undefined) continue;
      return outcome instanceof Promise
        ? outcome.then((late) => complete(late, incoming))
        : complete(outcome, incoming);
    }
    if (authorization === undefined) return refusal('credentials_required', incoming);
    return refusal('credentials_invalid', incoming, 'invalid_token', token === undefined ? noBearer : unknownKey);
  };
}

const noBearer: RefusalDetail = { why: 'not Authorization: Bearer' };
const unknownKey: RefusalDetail = { why: 'unknown key', description: 'The key is not valid here' };

/** RFC 6750, section 2.3. */
function hasTokenInQuery(url: string): boolean {
  const query = url.indexOf('?');
  return query >= 0 && new URLSearchParams(url.slice(query)).has('access_token');
}
