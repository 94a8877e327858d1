// src/auth/oauth: JWT access tokens of OAuth authorization servers, and the metadata of the gateway as their resource.
import type { Authenticator } from '../authenticate.ts';
import type { BearerToken } from '../bearer-token.ts';
import { type Challenge, type Identity, printableText } from '../identity.ts';
import { VerifiedTokens } from './verified-tokens.ts';
import { type TokenFault, type VerifiedToken, type VerifyOptions, verifyToken } from './verify-token.ts';

/** How many audiences of a token are shown in the log. */
const maxShownAudiences = 5;

/**
 * Makes authenticators for access tokens. All servers of a gateway share the verified tokens, but each server accepts
 * only tokens issued for it (2026-07-28, basic/authorization, "Token Handling"). The answer for a token that was
 * verified before comes at once. Every bearer token is taken for an access token, so authenticators of other kinds must
 * come first.
 */
export function createTokenAuthenticators(options: VerifyOptions): (audiences: ReadonlySet<string>) => Authenticator {
  const verified = new VerifiedTokens();

  const verify = async (token: BearerToken): Promise<VerifiedToken | TokenFault> => {
    const outcome = await verifyToken(token.text, options);
    if (!('reason' in outcome)) verified.add(token, outcome);
    return outcome;
  };

  return (audiences) => {
    const judge = (outcome: VerifiedToken | TokenFault): Identity | Challenge => {
      if ('reason' in outcome) return outcome;
      const isForThisServer = outcome.audiences.some((audience) => audiences.has(audience));
      if (isForThisServer) return outcome.identity;
      const seen = outcome.audiences.slice(0, maxShownAudiences).map(printableText);
      const description = 'The access token was issued for another resource';
      return { reason: 'credentials_invalid', detail: { why: 'aud', expected: [...audiences], seen, description } };
    };
    return (_incoming, token) => {
      if (token === undefined) return undefined;
      const known = verified.find(token, options.now());
      return known === undefined ? verify(token).then(judge) : judge(known);
    };
  };
}
